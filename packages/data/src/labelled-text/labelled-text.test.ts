import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LabelledTextBatch } from "../batch.ts";
import { datasetContract } from "../dataset-contract.ts";
import { datasets } from "../datasets.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-labelled-"));
  const rows = (count: number, from: number) =>
    Array.from({ length: count }, (_, i) => `${from + i}\tfirst ${from + i}\tand the second\t${i % 3}\n`).join("");
  writeFileSync(join(folder, "train.tsv"), `index\tsentence1\tsentence2\tlabel\n${rows(23, 0)}`);
  writeFileSync(join(folder, "dev.tsv"), `index\tsentence1\tsentence2\tlabel\n${rows(11, 100)}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const entry = datasets["labelled-text"];
const options = { tokenizer: "bytes", sentence: "sentence1", label: "label", classes: 3 };
const open = (given: object, more = {}) =>
  entry.open({ ...options, path: folder, ...more }, { batchSize: 2, seed: 0, rank: 0, ranks: 1, length: 24, ...given });

describe("labelled text", () => {
  datasetContract(open, { samples: 23, fields: entry.fields });

  const first = async (more: object) => {
    const data = await open({ batchSize: 1 }, more);
    for await (using batch of data.validation({ windows: 1, sharded: false })) {
      const { tokens, segments, mask, labels } = batch as LabelledTextBatch;
      const numbers = async (tensor: typeof tokens) => Array.from(await tensor.toTypedArray(), Number);
      return Promise.all([tokens, segments, mask, labels].map(numbers));
    }
    throw new Error("no batch");
  };

  it("is [CLS] sentence [SEP] and padding, with a mask", async () => {
    const text = [...Buffer.from("first 100")];
    const zeros = (count: number) => new Array(count).fill(0);
    expect(await first({})).toEqual([
      [256, ...text, 257, ...new Array(13).fill(259)],
      zeros(24),
      [...new Array(11).fill(1), ...zeros(13)],
      [0],
    ]);
  });

  it("has two segments for pairs, and the longer sentence is shortened first", async () => {
    const [tokens, segments, mask] = await first({ second: "sentence2", blockSize: 18 });
    expect(tokens).toEqual([256, ...Buffer.from("first 1"), 257, ...Buffer.from("and the "), 257]);
    expect(segments).toEqual([...new Array(9).fill(0), ...new Array(9).fill(1)]);
    expect(new Set(mask)).toEqual(new Set([1]));
  });

  it("tells models the number of classes", () => {
    expect(entry.facts(options)).toEqual({ vocabulary: 260, length: undefined, classes: 3 });
  });

  it("refuses a label out of range, and a column that is absent", async () => {
    await expect(open({}, { classes: 2 })).rejects.toThrow(
      /train\.tsv, line 4 has label 2, and the labels of 2 classes are 0 to 1; correct it, or set data\.classes/,
    );
    await expect(open({}, { sentence: "text" })).rejects.toThrow(
      /train\.tsv has no column text, only index, sentence1, sentence2, label/,
    );
  });
});
