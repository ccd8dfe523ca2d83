import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endAtOperation } from "../../../tools/testing/end-at-operation.ts";
import { checkFile } from "./check-file.ts";
import { CheckpointError } from "./checkpoint-error.ts";
import type { DType } from "./dtypes.ts";
import { loadWeights } from "./load-weights.ts";
import { readSafetensors, type StoredTensor, writeSafetensors } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";
import { storedElements } from "./stored-for-model.ts";
import { hasWeights, indexFile, openWeights, weightsFile } from "./weights.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-weights-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const floats = (...values: number[]): StoredTensor => ({
  dtype: "f32",
  shape: [values.length],
  data: Float32Array.from(values),
});
const tensors: [string, StoredTensor][] = [
  ["a", floats(1, 2)],
  ["b", floats(3, 4)],
  ["c", floats(5, 6, 7, 8, 9)],
  ["d", floats(10)],
];
const shards = [
  "model-00001-of-00003.safetensors",
  "model-00002-of-00003.safetensors",
  "model-00003-of-00003.safetensors",
];

async function values(of = folder): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  await using weights = await openWeights(of);
  for (const name of weights.tensors.keys())
    found[name] = Array.from((await weights.read(name)).data as Iterable<number>);
  return found;
}
const all = { a: [1, 2], b: [3, 4], c: [5, 6, 7, 8, 9], d: [10] };

describe("weights in shards", () => {
  it("have at most so many bytes each, unless one tensor is larger, and an index", async () => {
    const records = await saveModel(folder, tensors, { model_type: "gpt" }, { shardBytes: 16 });
    expect(readdirSync(folder).sort()).toEqual(["config.json", ...shards, indexFile].sort());
    expect(JSON.parse(readFileSync(join(folder, indexFile), "utf8"))).toEqual({
      metadata: { total_size: 40 },
      weight_map: { a: shards[0], b: shards[0], c: shards[1], d: shards[2] },
    });
    expect(records.map(({ name }) => name).sort()).toEqual(readdirSync(folder).sort());
    for (const record of records) await checkFile(folder, record);
    expect(await values()).toEqual(all);
  });

  it("name their tensors in the error for one that they lack", async () => {
    await saveModel(folder, tensors, {}, { shardBytes: 16 });
    await using weights = await openWeights(folder);
    await expect(weights.read("e")).rejects.toThrow(`${indexFile} has no tensor "e"; it has a, b, c, d.`);
  });

  it("take the place of one file, and the other way round", async () => {
    await saveModel(folder, [["old", floats(0)]], {});
    await saveModel(folder, tensors, {}, { shardBytes: 16 });
    expect([existsSync(join(folder, weightsFile)), hasWeights(folder)]).toEqual([false, true]);
    expect(await values()).toEqual(all);
    await saveModel(folder, [["new", floats(1)]], {});
    expect([existsSync(join(folder, indexFile)), hasWeights(folder)]).toEqual([false, true]);
    expect(await values()).toEqual({ new: [1] });
  });

  // Where the process ends after a save is written and before the older one is removed, the next save removes it.
  it.each<[string, number, number]>([
    ["shards by shards", 16, 16],
    ["shards by others of another number", 16, 30],
    ["one file by shards", Number.POSITIVE_INFINITY, 16],
    ["shards by one file", 16, Number.POSITIVE_INFINITY],
  ])("are replaced at once, wherever the process ends: %s", async (_, before, after) => {
    const changed = tensors.map(([name, { data }]) => {
      const tensor = floats(...Array.from(data as Float32Array, (value) => -value));
      return [name, tensor] as const;
    });
    const negative = Object.fromEntries(Object.entries(all).map(([name, of]) => [name, of.map((value) => -value)]));
    const older = join(folder, "older");
    const save = (target: string, of: typeof changed | typeof tensors, shardBytes: number) =>
      endAtOperation(Number.POSITIVE_INFINITY, () => saveModel(target, of, {}, { shardBytes }));
    await save(older, tensors, before);
    const seen = new Set<string>();
    for (let last = 0, ended = true; ended; last++) {
      const target = join(folder, String(last));
      cpSync(older, target, { recursive: true });
      ended = await endAtOperation(last, () => saveModel(target, changed, {}, { shardBytes: after }));
      const found = await values(target);
      expect([all, negative], `ended at operation ${last}`).toContainEqual(found);
      if (!ended) expect(found).toEqual(negative);
      seen.add(JSON.stringify(found));
      if (last % 4 > 0) continue;
      await save(target, tensors, before);
      const files = readdirSync(target).filter((name) => name.endsWith(".safetensors") && !name.startsWith("."));
      expect(files.length).toBe(before === 16 ? 3 : 1);
      expect(await values(target)).toEqual(all);
    }
    expect(seen.size).toBe(2);
  });

  const index = (change: (map: Record<string, unknown>) => void) => () => {
    const path = join(folder, indexFile);
    const content = JSON.parse(readFileSync(path, "utf8")) as { weight_map: Record<string, unknown> };
    change(content.weight_map);
    writeFileSync(path, JSON.stringify(content));
  };
  it.each<[string, () => unknown, RegExp]>([
    ["names a tensor that no shard has", index((map) => (map["e"] = shards[0])), /has the tensor "e", and it has not/],
    ["names the wrong shard", index((map) => (map["a"] = shards[2])), /has the tensor "a", and it has not/],
    ["leaves a tensor out", index((map) => delete map["b"]), /does not say that model-00001.* has the tensor "b"/],
    [
      "leads out of the folder",
      index((map) => (map["a"] = "../a.safetensors")),
      /"\.\.\/a\.safetensors", which is no shard/,
    ],
    ["leads to an absolute path", index((map) => (map["a"] = "/a.safetensors")), /which is no shard's name/],
    ["has a number for a shard", index((map) => (map["a"] = 1)), /which is no shard's name/],
    [
      "names a shard that is absent",
      () => rmSync(join(folder, shards[1]!)),
      /index\.json names 3 shards, of which 1 is not there: model-00002-of-00003\.safetensors; copy the folder again/,
    ],
    ["has a shard that is cut short", () => truncateSync(join(folder, shards[1]!), 100), /00002.* is incomplete/],
    ["is no JSON", () => writeFileSync(join(folder, indexFile), "{"), /is not a JSON object with a weight_map/],
    ["is a list", () => writeFileSync(join(folder, indexFile), "[]"), /is not a JSON object with a weight_map/],
    [
      "has a tensor twice",
      () =>
        writeSafetensors(join(folder, shards[2]!), [
          ["a", floats(1)],
          ["d", floats(10)],
        ]),
      /does not say that model-00003.* has the tensor "a"/,
    ],
  ])("are refused in one line where the index %s, and nothing is assigned", async (_, damage, message) => {
    await saveModel(folder, tensors, {}, { shardBytes: 16 });
    await damage();
    const model = tensors.map(([name, { shape }]) => [name, { shape, dtype: "f32" as DType }] as const);
    const error: Error = await loadWeights(folder, model, () => expect.unreachable()).then(
      () => expect.unreachable(),
      (each) => each,
    );
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain("\n");
  });
});

describe("weights of others", () => {
  const model = () =>
    new Map(["x", "y"].map((name) => [name, { shape: [2], dtype: "f32" as DType, values: undefined as unknown }]));
  const assign = (parameter: { values: unknown }, { data }: StoredTensor) => {
    parameter.values = Array.from(data as Iterable<number>);
  };
  const names = {
    basePrefix: "body.",
    unused: /^mask/,
    mayBeAbsent: (parameter: string) => parameter === "y",
  };

  it("are found by other names; what a model does not take is left out, and a new head stays", async () => {
    await saveModel(
      folder,
      [
        ["body.x", floats(1, 2)],
        ["mask.0", floats(0)],
      ],
      {},
    );
    const found = model();
    await loadWeights(folder, found, assign, names);
    expect([...found.values()].map(({ values }) => values)).toEqual([[1, 2], undefined]);
  });

  it("are refused where two names stand for one parameter, or another parameter is missing", async () => {
    await saveModel(
      folder,
      [
        ["body.x", floats(1, 2)],
        ["x", floats(1, 2)],
      ],
      {},
    );
    await expect(loadWeights(folder, model(), assign, names)).rejects.toThrow(/has x twice, as body\.x and as x/);
    await saveModel(folder, [["y", floats(1, 2)]], {});
    await expect(loadWeights(folder, model(), assign, names)).rejects.toThrow(/does not fit this model: missing x\./);
  });

  describe("that have several tensors for one parameter", () => {
    const qkv = {
      storedAs: (parameter: string) => (parameter === "x" ? ["q", "k", "v"] : [parameter]),
    };
    const rows = (count: number, from: number, dtype: DType = "f32"): StoredTensor => {
      const values = Array.from({ length: 2 * count }, (_, i) => from + i);
      return {
        dtype,
        shape: [count, 2],
        data: dtype === "f64" ? Float64Array.from(values) : Float32Array.from(values),
      };
    };
    const shape = (x: readonly number[]) =>
      new Map([["x", { shape: x, dtype: "f32" as DType, values: undefined as unknown }]]);

    it("are written row by row, also of a tensor that reads its elements, whole or in parts, and read into it", async () => {
      const source = { ...rows(3, 0), toTypedArray: async () => rows(3, 0).data };
      const { dtype, shape: whole } = rows(3, 0);
      const parts = (...cuts: number[]) => ({
        dtype,
        shape: whole,
        parts: () => cuts.map((cut, i) => Float32Array.from([0, 1, 2, 3, 4, 5]).subarray(cuts[i - 1] ?? 0, cut)),
      });
      for (const tensor of [rows(3, 0), source, parts(1, 5, 6), parts(2, 4, 6), parts(0, 6)]) {
        await saveModel(folder, [["x", tensor]], {}, qkv);
        const stored = await readSafetensors(join(folder, "model.safetensors"));
        expect([...stored].map(([name, { shape, data }]) => [name, shape, [...data]])).toEqual([
          ["k", [1, 2], [2, 3]],
          ["q", [1, 2], [0, 1]],
          ["v", [1, 2], [4, 5]],
        ]);
        const found = shape([3, 2]);
        await loadWeights(folder, found, assign, qkv);
        expect(found.get("x")!.values).toEqual([0, 1, 2, 3, 4, 5]);
        expect(await storedElements(folder)).toBe(6);
      }
    });

    it.each<[Record<string, StoredTensor>, RegExp]>([
      [{ q: rows(1, 0), v: rows(1, 0) }, /: missing x \(2 of its 3 parts are there\)\. /],
      [{ q: rows(1, 0), k: rows(2, 0), v: rows(1, 0) }, /: x is \(4, 2\) in the file and \(3, 2\) in the model\. /],
      [{ q: rows(1, 0), k: floats(1, 2), v: rows(1, 0) }, /: x is \(1, 2\) and \(2\) and \(1, 2\) in the file and /],
      [
        { q: rows(1, 0), k: rows(1, 0, "f64"), v: rows(1, 0) },
        /: x is f32 and f64 in the file and f32 in the model\. /,
      ],
      [{ q: rows(1, 0), x: rows(3, 0) }, /has x twice, as q and as x; /],
      [{ q: rows(1, 0), k: rows(1, Number.NaN), v: rows(1, 0) }, /: k has values that are not finite; /],
    ])("are refused where they do not fit: %#", async (tensors, message) => {
      await saveModel(folder, Object.entries(tensors), {});
      await expect(loadWeights(folder, shape([3, 2]), assign, qkv)).rejects.toThrow(message);
    });
  });

  it.each<[DType, StoredTensor["data"]]>([
    ["f8_e4m3", Uint8Array.of(0x38, 0xc4)], // 2⁰, −1.5 · 2¹
    ["f8_e5m2", Uint8Array.of(0x3c, 0xc2)],
  ])("of 8-bit floats become f32: %s", async (dtype, data) => {
    await saveModel(folder, [["x", { dtype, shape: [2], data }]], {});
    const found = model();
    await loadWeights(folder, found, assign, names);
    expect(found.get("x")!.values).toEqual([1, -3]);
  });

  it("are refused where they are no floats, or not finite", async () => {
    await saveModel(folder, [["x", { dtype: "u16", shape: [2], data: Uint16Array.of(1, 2) }]], {});
    await expect(loadWeights(folder, model(), assign, names)).rejects.toThrow(
      /x is u16 in the file and f32 in the model/,
    );
    await saveModel(folder, [["x", { dtype: "f8_e5m2", shape: [2], data: Uint8Array.of(1, 0x7c) }]], {});
    await expect(loadWeights(folder, model(), assign, names)).rejects.toThrow(/x has values that are not finite/);
  });
});
