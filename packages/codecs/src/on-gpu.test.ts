import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "../../../native/optimizers/src/index.ts";
import { emulatedKernels } from "../../../tools/testing/emulated-kernels.ts";
import { codecNamed } from "./codecs.ts";
import { BadWireError, type Codec, type Floats, int8, NotFiniteError, sign } from "./index.ts";
import { type Vectors, vectorsBeside } from "./testing/codec-contract.ts";
import { fromHex, toHex } from "./testing/hex.ts";
import { anyFloats } from "./testing/inputs.ts";

const folder = join(import.meta.dirname, "codecs");

/** A codec's kernels for GPUs are optional: `<name>.cu` in its folder. */
const hasKernels = (name: string) => existsSync(join(folder, name, `${name.replaceAll("-", "_")}.cu`));
const [withKernels, without] = [
  readdirSync(folder).filter(hasKernels),
  readdirSync(folder).filter((x) => !hasKernels(x)),
];

/** The same array, declared to be on a GPU. The emulated kernels read it at its address. */
const onGpu = (x: Float32Array, device = "cuda:0"): Floats => ({
  pointer: addressOf(x),
  length: x.length,
  dtype: "f32",
  device,
});

const bits = (x: Float32Array) => [...new Uint32Array(x.buffer, x.byteOffset, x.length)];

type Case = Vectors["cases"][number];

/** What a codec writes and adds, in bits. `of`: where its floats are. */
function used(codec: Codec, { call: { hold, ...rest }, x, wire, scale }: Case, of: (x: Float32Array) => Floats) {
  const mask = hold === undefined ? {} : { hold: fromHex(hold) };
  const call = { ...rest, ...mask } as never;
  const floats = Float32Array.from(x);
  const [written, kept] = [new Uint8Array(codec.wireBytes(x.length)), new Uint8Array(codec.wireBytes(x.length))];
  codec.encode(written, of(floats), call);
  const error = new Float32Array(x.length);
  const feedback = () =>
    codec.encodeWithFeedback(kept, of(floats), of(error), { ...(call as object), decay: 0.5 } as never);
  const ends = [0, 1].map(() => messageOf(feedback)); // the second time there is something to add
  if (ends.some(Boolean)) for (const undefinedNow of [error, kept]) undefinedNow.fill(0); // up to rounding the error is as before
  const sum = new Float32Array(x.length).fill(0.25);
  codec.decodeAdd(of(sum), fromHex(wire), { scale, ...mask });
  const replaced = new Float32Array(x.length).fill(7);
  codec.decode(of(replaced), fromHex(wire), { scale, ...mask });
  return [toHex(written), ends, toHex(kept), ...[error, sum, replaced].map(bits)];
}

function messageOf(call: () => void): string | undefined {
  try {
    return void call();
  } catch (error) {
    return (error as Error).message;
  }
}

describe("on a GPU", () => {
  beforeAll(() => {
    process.env["TERSE_CODECS_CUDA"] = emulatedKernels("codecs");
  }, 300_000);
  afterAll(() => {
    delete process.env["TERSE_CODECS_CUDA"];
  });

  it.each(withKernels)("%s gives the bits of the CPU", (name) => {
    const { cases } = vectorsBeside(new URL(`codecs/${name}/vectors.json`, import.meta.url).href);
    expect(cases.length).toBeGreaterThan(0);
    for (const one of cases) {
      const codec = codecNamed(name, one.parameters);
      expect(codec.runsOn("cuda:0")).toBe(true);
      const got = used(codec, one, onGpu);
      expect(got[0], one.name).toBe(one.wire);
      expect(got, one.name).toEqual(used(codec, one, (x) => x));
    }
  });

  it("runs no codec there that has no kernels", () => {
    const optionsOf = (name: string) =>
      vectorsBeside(new URL(`codecs/${name}/vectors.json`, import.meta.url).href).cases[0]!.parameters;
    const wrong = without.filter((name) => codecNamed(name, optionsOf(name)).runsOn("cuda:0"));
    expect(wrong).toEqual([]);
    expect(withKernels).toContain("qsgd");
  });

  it("gives the scales of the CPU", () => {
    const x = anyFloats(1000, 3).map((value) => value % 1);
    for (const [name, parameters] of [
      ["int8", {}],
      ["int8", { block: 64 }],
      ["l1", { bits: 4, segments: [100, 0, 900] }],
      ["linf", { bits: 2, block: 512 }],
      ["qsgd", { bits: 4 }],
    ] as const)
      expect(bits(codecNamed(name, parameters).scales(onGpu(x))), name).toEqual(
        bits(codecNamed(name, parameters).scales(x)),
      );
    expect(() => sign.scales(onGpu(x))).toThrow("this codec computes no scales apart from encoding");
  });

  it("names the first number that is not finite, and a bad wire", () => {
    const [codec, x] = [int8() as Codec, anyFloats(70, 1)];
    x[33] = Number.NaN;
    const wire = new Uint8Array(codec.wireBytes(70));
    const notFinite = expect.objectContaining({ name: NotFiniteError.name, index: 33 });
    expect(() => codec.encode(wire, onGpu(x))).toThrow(notFinite);
    expect(() => codec.encodeWithFeedback(wire, onGpu(x), onGpu(new Float32Array(70)))).toThrow(notFinite);
    expect(() => codec.scales(onGpu(x))).toThrow(notFinite);
    new DataView(wire.buffer).setFloat32(0, Number.NaN, true);
    expect(() => codec.decodeAdd(onGpu(x), wire)).toThrow(BadWireError);
  });

  it("refuses floats on two devices, and names what CUDA says", () => {
    const [codec, x, error] = [int8() as Codec, new Float32Array(8), new Float32Array(8)];
    const wire = new Uint8Array(codec.wireBytes(8));
    expect(() => codec.encodeWithFeedback(wire, onGpu(x), error)).toThrow(
      "error: is not on a GPU, where this kernel runs",
    );
    expect(() => codec.encodeWithFeedback(wire, x, onGpu(error))).toThrow("error: this codec runs on the CPU");
    expect(() => codec.encodeWithFeedback(wire, onGpu(x), onGpu(error, "cuda:1"))).toThrow(
      "error: is on cuda:1, and x on cuda:0",
    );
    expect(() => codec.encode(wire, onGpu(x, "cuda:1"))).toThrow("CUDA: an emulated error");
    expect(() => codec.encodeSumWithFeedback(wire, [], onGpu(error))).toThrow(
      "is f32 on cuda:0, and must be f32 on cpu",
    );
  });

  it("needs kernels: without them codecs run on the CPU alone, and a warning names the command that builds them", () => {
    const program = `import { int8 } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
      for (const device of ["cpu", "cuda:0", "cuda:0", "mps"]) console.log(int8().runsOn(device));`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=@terse/source", "--input-type=module", "-e", program],
      { env: { ...process.env, TERSE_CODECS_CUDA: "/nowhere/kernels.so", NODE_OPTIONS: "" }, encoding: "utf8" },
    );
    expect(stdout, stderr).toBe("true\nfalse\nfalse\nfalse\n");
    expect(stderr.match(/what codecs encode goes from the GPU through the CPU/g)).toHaveLength(1);
    expect(stderr).toMatch(/kernels\.so is missing\. `\.\/terse setup` builds them .* cmake -S native\/codecs\/cuda/);
  });
});
