import { expect, it } from "vitest";
import { buildModel } from "./build.ts";
import { readRecipe } from "./recipe.ts";

it.each([
  ["gpt-small", "model.heads=5", "model.heads: 5 does not divide width, 256"],
  ["deit-tiny-cifar", "model.patchSize=5", "model.patchSize: 5 does not divide imageSize, 32"],
])("names a wrong option of the model of %s by its key: %s", (name, override, sentence) => {
  expect(() => buildModel(readRecipe(name, [override]))).toThrow(sentence);
});
