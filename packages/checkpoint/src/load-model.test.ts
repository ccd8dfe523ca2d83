import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Linear, Module, ModuleList, manualSeed, memory, RMSNorm, zeros } from "@terse/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DType, TypedArray } from "./dtypes.ts";
import { loadModel } from "./load-model.ts";
import { openSafetensors, type StoredTensor } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-load-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

class Small extends Module {
  readonly blocks = new ModuleList([new Linear(3, 4), new Linear(4, 4)]);
  readonly outputNorm = new RMSNorm(4);
  readonly head: Linear;
  constructor(classes = 2) {
    super();
    this.head = new Linear(4, classes, { bias: false });
  }
}
const valuesOf = (model: Module) =>
  Promise.all(
    model.namedParameters().map(async ([name, parameter]) => [name, await parameter.toTypedArray()] as const),
  );

describe("loadModel", () => {
  it("loads the parameters into another model, in place, and frees the tensors that it read", async () => {
    manualSeed(1);
    const [saved, other] = [new Small(), new Small()];
    expect(await valuesOf(other)).not.toEqual(await valuesOf(saved));
    await saveModel(folder, saved.namedParameters(), { classes: 2 });
    const before = memory();
    await loadModel(folder, other.namedParameters());
    expect(memory()).toEqual(before);
    expect(await valuesOf(other)).toEqual(await valuesOf(saved));
    for (const parameter of other.parameters())
      expect([parameter.requiresGrad, parameter.dtype]).toEqual([true, "f32"]);
  });

  it("reads files that saveModel writes with PyTorch's names", async () => {
    await saveModel(folder, new Small().namedParameters(), {});
    await using file = await openSafetensors(join(folder, "model.safetensors"));
    expect([...file.tensors].map(([name, { shape }]) => [name, shape])).toEqual([
      ["blocks.0.bias", [4]],
      ["blocks.0.weight", [4, 3]],
      ["blocks.1.bias", [4]],
      ["blocks.1.weight", [4, 4]],
      ["head.weight", [2, 4]],
      ["output_norm.weight", [4]],
    ]);
  });

  it("converts between floating-point types", async () => {
    const half = new Linear(2, 2).to("bf16");
    await saveModel(folder, half.namedParameters(), {});
    const full = new Linear(2, 2);
    await loadModel(folder, full.namedParameters());
    // bf16 is the upper half of a float, so the conversion is exact.
    const bits = (await half.weight.toTypedArray()) as Uint16Array;
    const floats = new Float32Array(Uint32Array.from(bits, (b) => b << 16).buffer);
    expect(await full.weight.toTypedArray()).toEqual(floats);
  });

  // 1.5 and −∞ in the bits of IEEE 754 and of bfloat16.
  it.each<[DType, TypedArray, TypedArray]>([
    ["f64", Float64Array.of(1.5), Float64Array.of(Number.NEGATIVE_INFINITY)],
    ["f32", Float32Array.of(1.5), Float32Array.of(Number.NaN)],
    ["f16", Uint16Array.of(0x3e00), Uint16Array.of(0xfc00)],
    ["bf16", Uint16Array.of(0x3fc0), Uint16Array.of(0xff80)],
    ["f8_e4m3", Uint8Array.of(0x3c), Uint8Array.of(0x7f)],
    ["f8_e5m2", Uint8Array.of(0x3e), Uint8Array.of(0xfc)],
  ])("reads %s, and refuses what is not finite before it changes anything", async (dtype, value, infinite) => {
    const save = (data: TypedArray) =>
      saveModel(
        folder,
        ["a", "b"].map((name) => [name, { dtype, shape: [1], data: name === "a" ? value : data }]),
        {},
      );
    using a = zeros([1]);
    using b = zeros([1]);
    const parameters = [["a", a] as const, ["b", b] as const];
    await save(infinite);
    await expect(loadModel(folder, parameters)).rejects.toThrow(/: b has values that are not finite/);
    expect([a.item(), b.item()]).toEqual([0, 0]);
    await save(value);
    await loadModel(folder, parameters);
    expect([a.item(), b.item()]).toEqual([1.5, 1.5]);
  });

  it("reads integers, bools, scalars and empty tensors, wherever the data begin", async () => {
    const tensors: [string, StoredTensor][] = [
      ["i64", { dtype: "i64", shape: [2], data: BigInt64Array.of(-7n, 2n ** 60n) }],
      ["i32", { dtype: "i32", shape: [1, 1], data: Int32Array.of(5) }],
      ["f32", { dtype: "f32", shape: [], data: Float32Array.of(0.25) }],
      ["bool", { dtype: "bool", shape: [3], data: Uint8Array.of(1, 0, 1) }],
      ["empty", { dtype: "f32", shape: [0, 2], data: new Float32Array(0) }],
    ];
    await saveModel(folder, tensors, {});
    const path = join(folder, "model.safetensors");
    const aligned = readFileSync(path);
    const length = aligned.readUInt32LE(0);
    for (const shift of [0, 1, 4]) {
      const longer = Buffer.alloc(8);
      longer.writeUInt32LE(length + shift);
      const spaces = Buffer.alloc(shift, " ");
      writeFileSync(
        path,
        Buffer.concat([longer, aligned.subarray(8, 8 + length), spaces, aligned.subarray(8 + length)]),
      );
      const model = tensors.map(
        ([name, { dtype, shape }]) => [name, zeros([...shape], { dtype: dtype as "f32" })] as const,
      );
      await loadModel(folder, model);
      for (const [i, [, tensor]] of model.entries()) {
        expect(await tensor.toTypedArray()).toEqual(tensors[i]![1].data);
        tensor.dispose();
      }
    }
  });

  it("changes nothing when one parameter does not fit", async () => {
    await saveModel(folder, new Small(2).namedParameters(), {});
    const model = new Small(3);
    const before = await valuesOf(model);
    await expect(loadModel(folder, model.namedParameters())).rejects.toThrow(
      /does not fit this model: head\.weight is \(2, 4\) in the file and \(3, 4\) in the model\. /,
    );
    expect(await valuesOf(model)).toEqual(before);
  });
});

it("@terse/checkpoint can be imported without loading libtorch", () => {
  const script = `await import("@terse/checkpoint");
    const loaded = process.report.getReport().sharedObjects.filter((file) => file.includes("torch") || file.endsWith("tensor.node"));
    console.log(JSON.stringify(loaded));`;
  const flags = ["--conditions=@terse/source", "--no-warnings", "--input-type=module", "-e", script];
  expect(execFileSync(process.execPath, flags, { cwd: import.meta.dirname, encoding: "utf8" })).toBe("[]\n");
});
