import { describe, expect, it } from "vitest";
import { partsBySplit, splitOfName, splitOfPath } from "./split-names.ts";

describe("the split that a name stands for", () => {
  // Names of https://huggingface.co/docs/datasets/repository_structure, and of published corpora.
  it.each([
    ["train.csv", "training"],
    ["my_train_file_00001.csv", "training"],
    ["training-monolingual.tokenized.shuffled", "training"],
    ["train-00000-of-00003.parquet", "training"],
    ["fineweb_train_000001.bin", "training"],
    ["stories-valid.txt", "validation"],
    ["TinyStories-valid.txt", "validation"],
    ["wiki.valid.tokens", "validation"],
    ["validation-00000-of-00001.parquet", "validation"],
    ["val.bin", "validation"],
    ["Val2.TXT", "validation"],
    ["val2017", "validation"],
    ["dev", "validation"],
    ["dev_matched.tsv", "validation"],
    ["bnc_spoken.dev", "validation"],
    ["test-00000-of-00001.parquet", "test"],
    ["ptb.test.txt", "test"],
    ["testing data.txt", "test"],
    ["evaluation.jsonl", "test"],
    ["eval", "test"],
    ["fineweb_val_test.bin", "test"],
    ["train-val.txt", "validation"],
    ["retrieval.txt", undefined],
    ["interval.bin", undefined],
    ["valley.txt", undefined],
    ["latest.txt", undefined],
    ["devices", undefined],
    ["contest.txt", undefined],
    ["trainings.txt", undefined],
    ["", undefined],
  ])("%j: %s", (name, split) => expect(splitOfName(name)).toBe(split));

  it.each([
    ["validation/part.jsonl", "validation"],
    ["data/test/a/b.txt", "test"],
    ["validation/train/a.txt", "training"],
    ["val/train-notes.txt", "validation"], // folders come first
    ["val\\a.txt", "validation"],
    ["a/b/stories-valid.txt", "validation"],
    ["a/b/c.txt", undefined],
  ])("of the path %j: %s", (path, split) => expect(splitOfPath(path)).toBe(split));
});

it("the validation split is held out and the test split left; without one the test split is held out", () => {
  const parts = (...names: string[]) => partsBySplit(names, splitOfPath);
  expect(parts("a.txt", "train.txt", "val.txt", "dev/b.txt", "test.txt")).toEqual({
    training: ["a.txt", "train.txt"],
    heldOut: ["val.txt", "dev/b.txt"],
    heldOutSplit: "validation",
    leftOut: ["test.txt"],
  });
  expect(parts("train.txt", "test.txt")).toEqual({
    training: ["train.txt"],
    heldOut: ["test.txt"],
    heldOutSplit: "test",
    leftOut: [],
  });
  expect(parts("b.txt", "a.txt")).toEqual({
    training: ["b.txt", "a.txt"],
    heldOut: [],
    heldOutSplit: undefined,
    leftOut: [],
  });
});
