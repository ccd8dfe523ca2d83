import type { Config } from "@terse/checkpoint";
import { labelsOf } from "@terse/models";
import { expect, it } from "vitest";
import { meaningsIn, withMeanings } from "./meanings.ts";

const config = { architectures: ["ViTForImageClassification"], hidden_size: 8, ...labelsOf(3) };
const animals = { id2label: { 0: "cat", 1: "dog", 2: "zebra" } };

it("a config has the names that the data has, else those of the weights, else numbers", () => {
  const labels = (meanings: Config, names?: readonly string[]) => {
    const { id2label, label2id } = withMeanings(config, meanings, names);
    expect(label2id).toEqual(Object.fromEntries(Object.entries(id2label!).map(([id, label]) => [label, Number(id)])));
    return Object.values(id2label!);
  };
  expect(labels({})).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
  expect(labels(animals)).toEqual(["cat", "dog", "zebra"]);
  expect(labels(animals, ["a", "b", "c"])).toEqual(["a", "b", "c"]);
  expect(labels({}, ["a", "b"])).toEqual(["a", "b", "LABEL_2"]); // the model has more classes than the data
  expect(labels({}, ["a", "b", "c", "d"])).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
  expect(labels({ id2label: { 0: "cat" } })).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
  expect(labels({ id2label: "cat" })).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
});

it("of other weights are taken the names of classes and the ids of tokens, where they mean the same", () => {
  const theirs = { ...animals, eos_token_id: 7, pad_token_id: null, hidden_size: 4, transformers_version: "5" };
  expect(meaningsIn(theirs, { classes: true, tokens: true })).toEqual({
    ...animals,
    eos_token_id: 7,
    pad_token_id: null,
  });
  expect(meaningsIn(theirs, { classes: false, tokens: true })).toEqual({ eos_token_id: 7, pad_token_id: null });
  expect(meaningsIn(theirs, { classes: false, tokens: false })).toEqual({});
  // transformers has no such model.
  expect(withMeanings({ vocabulary: 9 }, { eos_token_id: 7 })).toEqual({ vocabulary: 9 });
});
