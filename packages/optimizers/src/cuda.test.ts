import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Group, loopback } from "@terse/collectives";
import { Arena, fromTypedArray, Module, noGrad, Parameter, Tensor } from "@terse/tensor";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type Algorithm, distributedLion, lion, lionCub, Optimizer } from "./index.ts";

const minutes = 60_000;
const sources = join(import.meta.dirname, "../../../native/optimizers/cuda");

class Model extends Module {
  readonly first: Parameter = new Parameter(fromTypedArray(wave(700, 1), [7, 100]), { role: "matrix" });
  readonly second: Parameter = new Parameter(fromTypedArray(wave(5000, 2)), { role: "vector" });
}

function wave(n: number, phase: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => (i % 11 === 3 ? 0 : Math.sin(i * 12.9898 + phase * 78.233)));
}

/** The parameters after a few steps of three ranks. `device`: what tensors say of their memory. */
async function train(algorithm: () => Algorithm, device?: string): Promise<number[][]> {
  const groups = loopback(3);
  const ranks = groups.map((group) => ready(group, algorithm()));
  if (device !== undefined) vi.spyOn(Tensor.prototype, "device", "get").mockReturnValue(device);
  for (let step = 0; step < 4; step++)
    await Promise.all(
      ranks.map(({ arena, optimizer, rank }) => {
        noGrad(() => arena.gradients.copy_(fromTypedArray(wave(arena.gradients.length, rank + 3 * step))));
        return optimizer.step({ lr: 0.01 });
      }),
    );
  vi.restoreAllMocks();
  const all = await Promise.all(ranks.map(({ arena }) => arena.parameters.toTypedArray()));
  for (const { optimizer } of ranks) await optimizer[Symbol.asyncDispose]();
  for (const group of groups) await group.close();
  return all.map((θ) => [...(θ as Float32Array)]);
}

function ready(group: Group, algorithm: Algorithm) {
  const arena = new Arena(new Model());
  const optimizer = new Optimizer(arena, group, { algorithm, clip: 10, compareEvery: 1, bucket: 1024 });
  return { arena, optimizer, rank: group.rank };
}

describe("a step whose floats are on a GPU", () => {
  const build = mkdtempSync(join(tmpdir(), "terse-optimizers-cuda-"));
  const before = process.env["TERSE_OPTIMIZERS_CUDA"];
  beforeAll(() => {
    const cmake = (...words: string[]) => execFileSync("cmake", words, { stdio: "pipe" });
    cmake("-S", sources, "-B", build);
    cmake("--build", build, "--target", "optimizers_cuda_emulated");
    process.env["TERSE_OPTIMIZERS_CUDA"] = join(build, "liboptimizers_cuda_emulated.so");
  }, 5 * minutes);
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => {
    if (before === undefined) delete process.env["TERSE_OPTIMIZERS_CUDA"];
    else process.env["TERSE_OPTIMIZERS_CUDA"] = before;
    rmSync(build, { recursive: true, force: true });
  });

  // The kernels are the GPU's, run on the CPU; that nothing else reads the floats, the refusals of what runs on the CPU see to.
  it.each([
    { name: "lion-cub", algorithm: () => lionCub({ weightDecay: 0.1 }) },
    { name: "distributed-lion, ties zero", algorithm: () => distributedLion({ weightDecay: 0.1 }) },
    { name: "distributed-lion, averaged", algorithm: () => distributedLion({ vote: "average" }) },
  ])("gives the bits of the CPU, from the norm to the comparison of ranks: $name", async ({ algorithm }) => {
    const expected = await train(algorithm);
    expect(new Set(expected[0]).size).toBeGreaterThan(1000);
    expect(await train(algorithm, "cuda:0")).toEqual(expected);
  });

  it("is refused where floats would have to travel", async () => {
    await expect(train(() => lion(), "cuda:0")).rejects.toThrow(/device|CPU/);
  });
});
