import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LabelledTextBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { datasetContract } from "../testing/dataset-contract.ts";

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
const defaults = { header: true };
const options = { tokenizer: "bytes", sentence: "sentence1", label: "label", classes: 3, ...defaults };
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

  it("reads words as labels, and another file to validate on, as MNLI has them", async () => {
    const path = join(folder, "mnli");
    mkdirSync(path);
    const head = "index\tgenre\tsentence1\tsentence2";
    writeFileSync(join(path, "train.tsv"), `${head}\tlabel1\tgold_label\n0\tfiction\tA.\tB.\tneutral\tneutral\n`);
    const dev = (i: number, gold: string) => `${i}\tfiction\tA.\tB.\tneutral\tneutral\tneutral\t${gold}\n`;
    writeFileSync(
      join(path, "dev_matched.tsv"),
      `${head}\tlabel1\tlabel2\tlabel3\tgold_label\n${dev(0, "contradiction")}${dev(1, "neutral")}`,
    );
    const labels = ["entailment", "neutral", "contradiction"];
    const mnli = { path, second: "sentence2", label: "gold_label", labels, validation: "dev_matched.tsv" };
    expect(entry.facts({ ...options, ...mnli })).toMatchObject({ classes: 3 });
    const data = await open({ batchSize: 2 }, mnli);
    for await (using batch of data.validation({ windows: 2, sharded: false }))
      expect(Array.from(await (batch as LabelledTextBatch).labels.toTypedArray(), Number)).toEqual([2, 1]);
    await expect(open({}, { ...mnli, labels: ["entailment", "contradiction"] })).rejects.toThrow(
      /train\.tsv, line 2 has label neutral, and data\.labels are entailment, contradiction; correct it/,
    );
  });

  it("reads a file without a header, whose columns are numbers, as CoLA has them", async () => {
    const path = join(folder, "cola");
    mkdirSync(path);
    for (const file of ["train.tsv", "dev.tsv"])
      writeFileSync(join(path, file), "gj04\t1\t\tFine.\ngj04\t0\t*\tBad.\n");
    const cola = { path, header: false, label: "2", sentence: "4", classes: 2 };
    const [tokens, , , labels] = await first(cola);
    expect([tokens!.slice(0, 7), labels]).toEqual([[256, ...Buffer.from("Fine."), 257], [1]]);
    await expect(open({}, { ...cola, sentence: "sentence" })).rejects.toThrow(/no column sentence, only 1, 2, 3, 4/);
  });

  it("refuses a label out of range, and a column that is absent", async () => {
    await expect(open({}, { classes: 2 })).rejects.toThrow(
      /train\.tsv, line 4 has label 2, and the labels of 2 classes are 0 to 1; correct it, or set data\.classes, or data\.labels for words/,
    );
    await expect(open({}, { sentence: "text" })).rejects.toThrow(
      /train\.tsv has no column text, only index, sentence1, sentence2, label/,
    );
  });

  describe("in files as they are", () => {
    const put = (name: string, files: Readonly<Record<string, string | Uint8Array>>) => {
      const path = join(folder, name);
      mkdirSync(path);
      for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
      return { path, sentence: "text", label: "label", classes: 2 };
    };
    const rows = (count: number) => Array.from({ length: count }, (_, i) => `text ${i}\t${i % 2}\n`).join("");
    const head = "text\tlabel\n";

    it("passes over rows of another width and counts them, as datasets' glue does with QQP", async () => {
      const given = put("qqp", {
        "train.tsv": `${head}${rows(5)}short\n${rows(5)}too\tmany\t1\n`,
        "dev.tsv": head + rows(3),
      });
      const data = await open({}, given);
      expect([data.trainingUnits, data.validationUnits, data.inventory!.passedOver]).toEqual([
        10,
        3,
        ["2 rows of train.tsv with a wrong number of columns (line 7 …)"],
      ]);
      await data[Symbol.asyncDispose]();
      const most = put("most", { "train.tsv": `${head}${rows(1)}a\nb\n` });
      await expect(open({}, most)).rejects.toThrow(
        /train\.tsv: 2 of 3 rows have a wrong number of columns \(line 3 has 1 /,
      );
    });

    it("takes csv, packed files, and the splits by other names, and says what is left", async () => {
      const csv = `text,label\n"a, b",1\nc,0\n`;
      const given = put("names", {
        "my_train.csv": csv,
        "validation.tsv.gz": gzipSync(head + rows(4)),
        "test.tsv": "text\na\n",
        "other.tsv": head,
        "README.md": "read me",
        "more.tsv.xz": "fd7zXZ",
      });
      const data = await open({}, given);
      expect([data.trainingUnits, data.validationUnits]).toEqual([2, 4]);
      const left = data.inventory!.leftOut.map(({ names: [name], why }) => [name, why]);
      expect(left).toEqual([
        ["README.md", "no .tsv or .csv"],
        ["more.tsv.xz", "packed by xz, which is not read, as gzip and zstd are: unpack it with unxz -k"],
        ["other.tsv", "neither trained nor validated on: data.validation names one"],
        ["test.tsv", "the test split"],
      ]);
      expect(await entry.inventory!({ ...options, ...given })).toEqual(data.inventory);
      await data[Symbol.asyncDispose]();
      await expect(open({}, { ...given, validation: "dev.tsv.gz" })).rejects.toThrow(
        /data\.validation is dev\.tsv\.gz, and there is no such file, or an empty one, in .*names; name one of my_train\.csv, other/,
      );
      await expect(open({}, put("none", { "train.tsv.bz2": "BZh" }))).rejects.toThrow(
        /none has no train\.tsv, nor another \.tsv or .* \(train\.tsv\.bz2 is packed by bzip2, which is not read, .*; add one/,
      );
      const same = await open({}, put("same", { "train.tsv": `${head}a\t1\nb\t1\n` }));
      expect(same.remarks).toEqual(["data: all 2 texts to train on have the label 1: there is nothing to learn"]);
      await same[Symbol.asyncDispose]();
    });

    it("refuses scores, such as those of STS-B, as what they are", async () => {
      await expect(open({}, put("sts", { "train.tsv": `${head}a\t3.800\n` }))).rejects.toThrow(
        /line 2 has the score 3\.800 as its label, and labels are classes here: scores such as STS-B's \(regression\) are not .*data\.labels/,
      );
    });
  });
});
