import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { emulatedKernels } from "../../../tools/testing/emulated-kernels.ts";
import {
  accumulateMoments,
  adamNorms,
  adamwStep,
  addLowRank,
  addressOf,
  applyAdamUpdate,
  applySigns,
  applyTally,
  applyTernary,
  fingerprint,
  lionMix,
  lionStep,
  lionVote,
  type NativeBuffer,
  NotFiniteError,
  normalizeColumns,
  refreshVariance,
  sgdStep,
  sumOfSquares,
} from "./index.ts";
import { anyBytes, anyFloats, bits, lengths } from "./testing/inputs.ts";

const sources = join(import.meta.dirname, "../cuda");
const build = join(sources, "build/tests"); // not where users build the library
const minutes = 60_000;
// The code for GPUs is compiled and not run here, so it need not be fast.
const configured = spawnSync("cmake", ["-S", sources, "-B", build, "-DTERSE_CUDA_FAST_COMPILE=ON"], {
  encoding: "utf8",
});
const output = configured.stdout + configured.stderr;
const nvccMissing = /-- CUDA: \/\S+ \(/.test(output)
  ? undefined
  : (process.env["TERSE_NVCC_MISSING"] ?? /-- CUDA: (.*)/.exec(output)?.[1] ?? "CMake failed");
const make = (target: string) =>
  execFileSync("cmake", ["--build", build, "--target", target], { encoding: "utf8", stdio: "pipe" });

const betas = { beta1: 0.9, beta2: 0.99, gradientScale: 0.7 };
const rates = { lr: 0.01, weightDecay: 0.1, ...betas };
const change = { keep: 1 - 0.01 * 0.1, scale: -0.01 };

/** The same array, declared to be on a GPU. The emulated library reads it at its host address. */
const asCuda = (x: Float32Array): NativeBuffer => ({
  pointer: addressOf(x),
  length: x.length,
  dtype: "f32",
  device: "cuda:0",
});

/** n floats with sentinels on both sides. shift 0: the address is a multiple of 16 bytes; shift 1: it is not. */
function withSentinels(n: number, shift: number, seed: number) {
  const all = new Float32Array(n + 20).fill(-77.5);
  const from = Number((16n - (addressOf(all) % 16n)) % 16n) / 4 + 8 + shift;
  const x = all.subarray(from, from + n);
  x.set(anyFloats(n, seed));
  return { all, x };
}

const many = [...lengths, 511, 512, 513, 4096, 5003, 8192 + 7, 65_536, 70_001];
const few = [0, 1, 15, 17, 64, 255, 1024, 1025, 5003, 70_001];

/** Calls `check` for many lengths and both alignments; `side()` gives fresh arrays, always with the same values. */
function eachPair(check: (n: number, side: () => Side) => void, of: readonly number[] = many): void {
  for (const n of of)
    for (const shift of [0, 1])
      check(n, () => ({
        θ: withSentinels(n, shift, n),
        m: withSentinels(n, shift, n + 1),
        g: withSentinels(n, shift, n + 2),
        v: withSentinels(n, shift, n + 3),
      }));
}

interface Side {
  readonly θ: { all: Float32Array; x: Float32Array };
  readonly m: { all: Float32Array; x: Float32Array };
  readonly g: { all: Float32Array; x: Float32Array };
  readonly v: { all: Float32Array; x: Float32Array };
}

const everything = ({ θ, m, g, v }: Side) => [θ, m, g, v].map(({ all }) => bits(all));

const magnitudes = (x: Float32Array): void =>
  x.forEach((value, i) => {
    x[i] = Math.abs(value);
  });

describe("the CUDA kernels of optimizers", () => {
  beforeAll(() => {
    expect(configured.status, output).toBe(0);
    process.env["TERSE_OPTIMIZERS_CUDA"] = emulatedKernels("optimizers");
  }, 5 * minutes);

  it.each(["plus", "minus"] as const)("vote and update momenta with the bits of the CPU: zeros %s", (zero) => {
    eachPair((n, side) => {
      const [cpu, gpu] = [side(), side()];
      const [expected, wire] = [new Uint8Array(Math.ceil(n / 8)), new Uint8Array(Math.ceil(n / 8)).fill(0xa5)];
      lionVote(expected, cpu.m.x, cpu.g.x, { ...betas, zero });
      lionVote(wire, asCuda(gpu.m.x), asCuda(gpu.g.x), { ...betas, zero });
      expect(wire, `n = ${n}`).toEqual(expected);
      expect(everything(gpu), `n = ${n}`).toEqual(everything(cpu));
    });
  });

  it("mix with the bits of the CPU", () => {
    eachPair((n, side) => {
      const [cpu, gpu] = [side(), side()];
      lionMix(cpu.θ.x, cpu.m.x, cpu.g.x, betas);
      lionMix(asCuda(gpu.θ.x), asCuda(gpu.m.x), asCuda(gpu.g.x), betas);
      expect(everything(gpu), `n = ${n}`).toEqual(everything(cpu));
    });
  });

  it.each(["plus", "minus", "hold"] as const)("step with the bits of the CPU: zeros %s", (zero) => {
    eachPair((n, side) => {
      const [cpu, gpu] = [side(), side()];
      lionStep(cpu.θ.x, cpu.m.x, cpu.g.x, { ...rates, zero });
      lionStep(asCuda(gpu.θ.x), asCuda(gpu.m.x), asCuda(gpu.g.x), { ...rates, zero });
      expect(everything(gpu), `n = ${n}`).toEqual(everything(cpu));
    });
  });

  it("apply votes with the bits of the CPU: signs, signs with ties, counts", () => {
    eachPair((n, side) => {
      const planes = Array.from({ length: 4 }, (_, k) => anyBytes(Math.ceil(n / 8), n + k));
      const two = planes.slice(0, 2); // for 3 ranks every pair of bits is a valid count
      const apply = (θ: Float32Array | NativeBuffer) => {
        applySigns(θ, planes[0]!, change);
        applyTernary(θ, planes[1]!, planes[2]!, change);
        applyTally(θ, two, 3, change);
        applyTally(θ, planes, 15, change);
      };
      const [cpu, gpu] = [side(), side()];
      apply(cpu.θ.x);
      apply(asCuda(gpu.θ.x));
      expect(everything(gpu), `n = ${n}`).toEqual(everything(cpu));
    });
  });

  const update = { first: 1.7, second: 0.9, eps: 1e-6, weightDecay: 0.1 };
  const steps: Record<string, (of: (x: Float32Array) => Float32Array | NativeBuffer, side: Side) => unknown> = {
    adamw: (of, { θ, m, v, g }) => adamwStep(of(θ.x), of(m.x), of(v.x), of(g.x), { ...rates, eps: 1e-8, step: 3 }),
    "sgd without momentum": (of, { θ, g }) =>
      sgdStep(of(θ.x), undefined, of(g.x), { ...rates, momentum: 0, dampening: 0, nesterov: false, first: false }),
    "sgd, its first step": (of, { θ, m, g }) =>
      sgdStep(of(θ.x), of(m.x), of(g.x), { ...rates, momentum: 0.9, dampening: 0.3, nesterov: false, first: true }),
    "sgd with Nesterov's momentum": (of, { θ, m, g }) =>
      sgdStep(of(θ.x), of(m.x), of(g.x), { ...rates, momentum: 0.9, dampening: 0, nesterov: true, first: false }),
    "Adam's moments": (of, { m, v, g }) => accumulateMoments(of(m.x), of(v.x), of(g.x), betas),
    "the norms of Adam's update": (of, { θ, m, v }) => adamNorms(of(θ.x), of(m.x), of(v.x), update),
    "Adam's update": (of, { θ, m, v }) => applyAdamUpdate(of(θ.x), of(m.x), of(v.x), { ...update, rate: 0.01 }),
    "1-bit LAMB's variance": (of, { θ, m, v, g }) =>
      refreshVariance(of(v.x), of(g.x), of(m.x), of(θ.x), { ...betas, eps: 1e-6, root: false }),
    "1-bit LAMB's variance, of roots": (of, { θ, m, v, g }) =>
      refreshVariance(of(v.x), of(g.x), of(m.x), of(θ.x), { ...betas, eps: 1e-6, root: true }),
  };

  it.each(Object.keys(steps))("give the bits of the CPU: %s", (name) => {
    eachPair((n, side) => {
      const [cpu, gpu] = [side(), side()];
      for (const { v, g } of [cpu, gpu]) {
        magnitudes(v.x);
        if (name.includes("variance")) magnitudes(g.x); // the frozen one
      }
      const expected = steps[name]!((x) => x, cpu);
      expect(steps[name]!(asCuda, gpu), `n = ${n}`).toEqual(expected);
      expect(everything(gpu), `n = ${n}`).toEqual(everything(cpu));
    }, few);
  });

  it("give the bits of the CPU: products of low-rank factors, and columns of norm 1", () => {
    for (const [m, n, r] of [
      [1, 1, 1],
      [5, 3, 2],
      [70, 65, 17],
      [64, 130, 33],
      [129, 256, 18],
    ] as const) {
      const sides = [0, 1].map(() => ({
        x: anyFloats(m * n, 1),
        p: anyFloats(m * r, 2),
        q: anyFloats(n * r, 3),
        columns: anyFloats(n * r, 4),
      }));
      const [cpu, gpu] = sides as [(typeof sides)[0], (typeof sides)[0]];
      for (const { columns } of sides) for (let i = 0; i < n; i++) columns[i * r] = columns[i * r]! * 1e-12;
      const run = ({ x, p, q, columns }: typeof cpu, of: (x: Float32Array) => Float32Array | NativeBuffer) => {
        addLowRank(of(x), of(p), of(q), { rank: r, keep: 0.9, scale: 0.3 });
        normalizeColumns(of(q), of(columns), { rank: r, threshold: 1e-6 });
        return [x, p, q, columns].map(bits);
      };
      expect(run(gpu, asCuda), `${m} × ${n}, rank ${r}`).toEqual(run(cpu, (x) => x));
    }
    const x = new Float32Array(6);
    expect(() => addLowRank(asCuda(x), asCuda(x), x, { rank: 2, keep: 1, scale: 1 })).toThrow("q: is not on a GPU");
  });

  it("give the sum of squares and the fingerprint of the CPU", () => {
    eachPair((n, side) => {
      const { x } = side().θ;
      expect(sumOfSquares(asCuda(x)), `n = ${n}`).toBe(sumOfSquares(x));
      expect(fingerprint(asCuda(x)), `n = ${n}`).toBe(fingerprint(x));
    });
    const long = anyFloats(3 * 65_536 + 4096 + 77, 5);
    expect(sumOfSquares(asCuda(long))).toBe(sumOfSquares(long));
  });

  it("throw NotFiniteError with the index of the first element", () => {
    for (const n of [70, 513, 5003]) {
      const [m, v, g] = [new Float32Array(n), new Float32Array(n), anyFloats(n, 3)];
      g[n - 1] = Number.POSITIVE_INFINITY;
      g[n - 60] = Number.NaN;
      for (const call of [
        () => lionVote(new Uint8Array(Math.ceil(n / 8)), asCuda(m), asCuda(g), { ...betas, zero: "plus" }),
        () => lionStep(asCuda(anyFloats(n, 1)), asCuda(m), asCuda(g), { ...rates, zero: "hold" }),
        () => adamwStep(asCuda(anyFloats(n, 1)), asCuda(m), asCuda(v), asCuda(g), { ...rates, eps: 1e-8, step: 1 }),
        () => accumulateMoments(asCuda(m), asCuda(v), asCuda(g), betas),
        () => {
          const options = { ...rates, momentum: 0.9, dampening: 0, nesterov: false, first: false };
          sgdStep(asCuda(anyFloats(n, 1)), asCuda(m), asCuda(g), options);
        },
      ]) {
        expect(call).toThrow(expect.objectContaining({ name: NotFiniteError.name, index: n - 60 }));
        for (const state of [m, v]) state.fill(0);
      }
    }
  });

  it("refuse arrays on different devices, and a device that does not exist", () => {
    const [m, g] = [new Float32Array(64), new Float32Array(64)];
    const vote = (one: Float32Array | NativeBuffer, other: Float32Array | NativeBuffer) =>
      lionVote(new Uint8Array(8), one, other, { ...betas, zero: "plus" });
    expect(() => vote(asCuda(m), g)).toThrow(
      "g: is not on a GPU, where this kernel runs; move all arrays of the call to one device",
    );
    expect(() => vote(m, asCuda(g))).toThrow(
      "g: is on another device than the CPU, where this kernel runs; move all arrays of the call to one device",
    );
    expect(() => vote(asCuda(m), { ...asCuda(g), device: "cuda:1" })).toThrow(
      "g: is on cuda:1, and the first array of this call on cuda:0; move all arrays of the call to one device",
    );
    const onOtherDevice = { ...asCuda(m), device: "cuda:1" };
    expect(() => sumOfSquares(onOtherDevice)).toThrow("CUDA: an emulated error");
    expect(() => lionVote(new Uint8Array(7), asCuda(m), asCuda(g), { ...betas, zero: "plus" })).toThrow(
      "wire: expected 8 bytes, one bit per float, got 7",
    );
  });

  it("name the command that builds a missing library", () => {
    const script = `import { sumOfSquares } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
      try { sumOfSquares({ pointer: 4096n, length: 1, dtype: "f32", device: "cuda:0" }); } catch (error) { console.log(error.message); }`;
    const { stdout } = spawnSync(
      process.execPath,
      ["--conditions=@terse/source", "--input-type=module", "-e", script],
      {
        encoding: "utf8",
        env: { ...process.env, TERSE_OPTIMIZERS_CUDA: "/no/such/library.so" },
      },
    );
    expect(stdout).toContain(
      "/no/such/library.so is missing. `./terse setup` builds them where there is an NVIDIA driver",
    );
  });

  it.skipIf(nvccMissing !== undefined)(
    `compile for every GPU since Ampere, and open without a driver${nvccMissing === undefined ? "" : `: ${nvccMissing}`}`,
    () => {
      make("optimizers_cuda_check_program"); // and the library
      const library = join(build, "libterse_optimizers_cuda.so");
      const symbols = execFileSync("nm", ["--dynamic", "--defined-only", library], { encoding: "utf8" });
      const header = readFileSync(join(sources, "../../include/terse/optimizers_cuda.h"), "utf8");
      const declared = [...header.matchAll(/^TERSE_OPTIMIZERS_CUDA_API .*?(terse_\w+)\(/gm)].map(([, name]) => name!);
      expect([...symbols.matchAll(/ T (\w+)$/gm)].map(([, name]) => name!)).toEqual(declared);
      expect(execFileSync("ldd", [library], { encoding: "utf8" })).not.toMatch(/cuda\S* =>|not found/);
      const { status, stdout } = spawnSync(join(build, "optimizers_cuda_check"), ["check"], { encoding: "utf8" });
      expect(stdout).toMatch(status === 77 ? /^skipped: no / : /checks, 0 failed/);
    },
    20 * minutes,
  );
});
