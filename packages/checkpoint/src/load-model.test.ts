import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Linear, Module, ModuleList, manualSeed, memory, RMSNorm } from "@terse/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadModel } from "./load-model.ts";
import { saveModel } from "./model-folder.ts";
import { openSafetensors } from "./safetensors.ts";

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
