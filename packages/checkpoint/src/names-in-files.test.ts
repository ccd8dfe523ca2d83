import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadWeights } from "./load-weights.ts";
import { misfits } from "./misfits.ts";
import { meaningsOf } from "./names-in-files.ts";
import type { StoredTensor } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";
import { differingCopy } from "./stored-for-model.ts";

const parameters = ["body.wte", "body.h.0.w", "head"];
const names = {
  basePrefix: "body.",
  copies: { "lm_head.weight": "body.wte" },
  unused: /\.mask$/,
  storedAs: (parameter: string) => (parameter === "head" ? ["classifier"] : [parameter]),
};
const whole = (parameter: string) => ({ parameter, part: 0, parts: 1 });

it.each([
  ["body.wte", whole("body.wte")],
  ["wte", whole("body.wte")], // of the base model
  ["classifier", whole("head")],
  ["head", whole("head")], // the model's own name
  ["body.head", whole("head")], // more in front than here
  ["module.body.h.0.w", whole("body.h.0.w")], // DistributedDataParallel
  ["_orig_mod.h.0.w", whole("body.h.0.w")], // torch.compile
  ["module._orig_mod.body.h.0.w", whole("body.h.0.w")],
  ["_orig_mod.module.body.h.0.w", whole("body.h.0.w")],
  ["model._orig_mod._orig_mod.h.0._orig_mod.w", whole("body.h.0.w")], // blocks that were compiled by themselves
  ["state_dict.model.module.body.wte", whole("body.wte")],
  ["_fsdp_wrapped_module.body.h._fsdp_wrapped_module.0._checkpoint_wrapped_module.w", whole("body.h.0.w")],
  ["lm_head.weight", { copyOf: "body.wte" }],
  ["module.lm_head.weight", { copyOf: "body.wte" }],
  ["module.h.0.mask", "unused"],
  ["optimizer.body.wte", undefined],
  ["module.", undefined],
  ["", undefined],
])("%j in a file", (stored, meaning) => {
  expect(meaningsOf(parameters, names)(stored)).toEqual(meaning);
});

it("a wrapper's name that is the model's own stays", () => {
  expect(meaningsOf(["model.w", "module.w"])("model.w")).toEqual(whole("model.w"));
  expect(meaningsOf(["model.w"])("w")).toBeUndefined();
});

describe("the weights of a folder", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "terse-names-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const floats = (...values: number[]): StoredTensor => ({
    dtype: "f32",
    shape: [values.length],
    data: Float32Array.from(values),
  });
  const model = () => parameters.map((name) => [name, { shape: [2], dtype: "f32" as const }] as const);
  const rest = { "h.0.w": floats(3, 4), classifier: floats(5, 6) };
  const read = async (stored: Record<string, StoredTensor>, shardBytes = 1e9) => {
    await saveModel(folder, Object.entries(stored), {}, { shardBytes });
    const values: Record<string, number[]> = {};
    const assign = (_: unknown, { data }: StoredTensor, name: string) => {
      values[name] = Array.from(data as Float32Array);
    };
    await loadWeights(folder, model(), assign, names);
    return values;
  };
  const expected = { "body.wte": [1, 2], "body.h.0.w": [3, 4], head: [5, 6] };

  it.each([1e9, 8])(
    "are read where a tied parameter is there twice, or under the other name alone: %s",
    async (size) => {
      const [first, copy] = [{ wte: floats(1, 2) }, { "module.lm_head.weight": floats(1, 2) }];
      for (const tied of [first, copy, { ...first, ...copy }])
        expect(await read({ ...rest, ...tied }, size)).toEqual(expected);
    },
  );

  it.each([1e9, 8])("are refused where the copy differs, and it is named: %s", async (size) => {
    const copies = [floats(1, 3), floats(1, 2, 3), { dtype: "f64", shape: [2], data: Float64Array.of(1, 2) } as const];
    for (const copy of copies) {
      const stored = { ...rest, wte: floats(1, 2), "lm_head.weight": copy };
      await expect(read(stored, size)).rejects.toThrow(
        /: lm_head\.weight and wte have other values, and in this model they are one tensor; set tie_word_embeddings to false/,
      );
      expect(await differingCopy(folder, model(), names)).toBe("lm_head.weight");
    }
  });

  it("that do not fit are shown beside what is missing, few of each, with the most similar one", async () => {
    const stored = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`net.h.${i}.w`, floats(1, 2)]));
    await saveModel(folder, Object.entries({ ...stored, head: floats(1, 2) }), {});
    expect(await misfits(folder, model(), names)).toBe(
      "missing body.wte, body.h.0.w; unexpected net.h.0.w, net.h.1.w, net.h.2.w, net.h.3.w, and 5 more; body.h.0.w may be net.h.0.w there",
    );
    const long = "x".repeat(1e6);
    await saveModel(folder, [[long, floats(1, 2)]], {});
    expect(await misfits(folder, model(), names)).toMatch(
      /^missing body\.wte, body\.h\.0\.w, head; unexpected x{117}…$/,
    );
  });

  it("of 300,000 names are compared in one line", async () => {
    const header: Record<string, object> = {};
    for (let i = 0; i < 300_000; i++) header[`layers.${i}.w`] = { dtype: "F32", shape: [0], data_offsets: [0, 0] };
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, text]));
    expect(await misfits(folder, model(), names)).toMatch(/and 299996 more/);
  });
});
