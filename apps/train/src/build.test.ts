import { expect, it } from "vitest";
import { buildModel } from "./build.ts";
import { readRecipe } from "./recipe.ts";

it.each([
  ["gpt-small", ["model.heads=5"], "model.heads: 5 does not divide width, 256"],
  [
    "gpt-small",
    ["model.context=128", "data.blockSize=129"],
    "data.blockSize: rows of 129 tokens do not fit the model's context of 128; take at most 128, or leave it out",
  ],
  [
    "bert-tiny-one-bit-lamb",
    ["model.name=bert-classifier", "data.name=masked-text"],
    "model.name: bert-classifier reads tokens, segments, mask, labels, and data.name: masked-text has tokens, segments,",
  ],
  ["deit-tiny-cifar", ["model.patchSize=5"], "model.patchSize: 5 does not divide imageSize, 32"],
])("names a wrong option of the model of %s by its key: %j", (name, overrides, sentence) => {
  expect(() => buildModel(readRecipe(name, overrides))).toThrow(sentence);
});
