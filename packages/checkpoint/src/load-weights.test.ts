import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CheckpointError } from "./checkpoint-error.ts";
import { loadConfig } from "./config-file.ts";
import type { DType } from "./dtypes.ts";
import { loadWeights } from "./load-weights.ts";
import { openSafetensors, type StoredTensor } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "terse-model-")), "checkpoints", "step-5");
});
afterEach(() => rmSync(join(folder, "..", ".."), { recursive: true, force: true }));

interface Parameter {
  shape: readonly number[];
  dtype: DType;
  values?: number[];
}
const zeros = (...shape: number[]): Parameter => ({ shape, dtype: "f32" });
const assign = (parameter: Parameter, stored: StoredTensor) => {
  parameter.values = Array.from(stored.data as Iterable<number>);
};
const saved: [string, StoredTensor][] = [
  ["token_embedding.weight", { dtype: "f32", shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) }],
  ["blocks.0.out_projection.bias", { dtype: "f32", shape: [2], data: Float32Array.of(5, 6) }],
];
const config = { model_type: "gpt", width: 2, layers: 1 };

describe("a model's folder", () => {
  it("has config.json, and model.safetensors with PyTorch's format", async () => {
    await saveModel(folder, saved, config);
    expect(readdirSync(folder).sort()).toEqual(["config.json", "model.safetensors"]);
    expect(readFileSync(join(folder, "config.json"), "utf8")).toBe(`${JSON.stringify(config, null, 2)}\n`);
    await using file = await openSafetensors(join(folder, "model.safetensors"));
    expect([...file.tensors.keys()]).toEqual(["blocks.0.out_projection.bias", "token_embedding.weight"]);
    expect(file.metadata["format"]).toBe("pt");
  });

  it("loads the saved weights and config", async () => {
    await saveModel(folder, saved, config);
    expect(await loadConfig(folder)).toEqual(config);
    const model = new Map([
      ["blocks.0.out_projection.bias", zeros(2)],
      ["token_embedding.weight", zeros(2, 2)],
    ]);
    await loadWeights(folder, model, assign);
    expect(model.get("token_embedding.weight")!.values).toEqual([1, 2, 3, 4]);
    expect(model.get("blocks.0.out_projection.bias")!.values).toEqual([5, 6]);
  });

  it("lists every name that is missing, unexpected or of another shape, and assigns nothing", async () => {
    await saveModel(
      folder,
      [...saved, ["a", saved[0]![1]], ["steps", { dtype: "i64", shape: [1], data: BigInt64Array.of(1n) }]],
      config,
    );
    const model = new Map([
      ["token_embedding.weight", zeros(4, 1)],
      ["blocks.0.out_projection.bias", zeros(2)],
      ["blocks.1.out_projection.bias", zeros(2)],
      ["head.weight", zeros(2)],
      ["steps", zeros(1)],
    ]);
    await expect(loadWeights(folder, model, assign)).rejects.toThrow(
      new CheckpointError(
        `${folder}/model.safetensors does not fit this model: missing blocks.1.out_projection.bias, head.weight; unexpected a; token_embedding.weight is (2, 2) in the file and (4, 1) in the model; steps is i64 in the file and f32 in the model. Build the model from the config.json next to the file; if it is, the two do not belong together, or the model's head is missing: use other weights.`,
      ),
    );
    for (const { values } of model.values()) expect(values).toBeUndefined();
  });

  it("accepts another floating-point dtype", async () => {
    await saveModel(folder, [["w", { dtype: "bf16", shape: [1], data: Uint16Array.of(0x3f80) }]], config);
    const seen: DType[] = [];
    await loadWeights(folder, [["w", zeros(1)]], (_, stored) => void seen.push(stored.dtype));
    expect(seen).toEqual(["bf16"]);
  });

  it("keeps the old weights when new ones cannot be written", async () => {
    await saveModel(folder, saved, config);
    const before = readFileSync(join(folder, "model.safetensors"));
    const disposed = {
      dtype: "f32" as const,
      shape: [2],
      toTypedArray: () => Promise.reject(new Error("the tensor was disposed")),
    };
    await expect(saveModel(folder, [["w", disposed]], config)).rejects.toThrow("the tensor was disposed");
    expect(readFileSync(join(folder, "model.safetensors"))).toEqual(before);
    expect(readdirSync(folder).sort()).toEqual(["config.json", "model.safetensors"]);
  });

  it("reports in one sentence what is wrong with a folder", async () => {
    await expect(loadConfig(folder)).rejects.toThrow(
      `Cannot read ${folder}/config.json: it does not exist; check the path.`,
    );
    await expect(loadWeights(folder, [], assign)).rejects.toThrow(
      `Cannot read ${folder}/model.safetensors: it does not exist; check the path.`,
    );
    await saveModel(folder, saved, config);
    for (const text of ["", "{", "[]", "null"]) {
      writeFileSync(join(folder, "config.json"), text);
      await expect(loadConfig(folder)).rejects.toThrow(`${folder}/config.json is not a JSON object`);
    }
    writeFileSync(join(folder, "config.json"), '{"limit": Infinity}');
    await expect(loadConfig(folder)).rejects.toThrow(
      /config\.json is not a JSON object \(Unexpected token 'I', .*\); correct it, or copy it again\.$/,
    );
    await expect(saveModel(join(folder, "config.json", "x"), saved, config)).rejects.toThrow(
      /^Cannot create the folder .*: a part of the path is a file, not a folder; check the path\.$/,
    );
  });
});

describe("weights that are not finite", () => {
  it.each<[string, StoredTensor]>([
    ["f32", { dtype: "f32", shape: [2], data: Float32Array.of(1, Number.NaN) }],
    ["f64", { dtype: "f64", shape: [2], data: Float64Array.of(Number.NEGATIVE_INFINITY, 1) }],
    ["bf16", { dtype: "bf16", shape: [2], data: Uint16Array.of(0x3f80, 0xff80) }],
    ["f16", { dtype: "f16", shape: [2], data: Uint16Array.of(0x3c00, 0x7e00) }],
  ])("are refused, and nothing is assigned: %s", async (_, tensor) => {
    const zero: StoredTensor = { dtype: "f32", shape: [2], data: new Float32Array(2) };
    await saveModel(
      folder,
      [
        ["a", zero],
        ["b", tensor],
      ],
      config,
    );
    const model = new Map([
      ["a", zeros(2)],
      ["b", zeros(2)],
    ]);
    await expect(loadWeights(folder, model, assign)).rejects.toThrow(
      `${folder}/model.safetensors: b has values that are not finite; use another checkpoint.`,
    );
    for (const { values } of model.values()) expect(values).toBeUndefined();
  });
});
