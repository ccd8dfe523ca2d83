import { datasets } from "@terse/data";
import { Arena, memoryDuring, scope } from "@terse/tensor";
import { expect, it } from "vitest";
import { buildModel } from "../build.ts";
import { forwardIn } from "../precision.ts";
import { type Recipe, readRecipe } from "../recipe.ts";
import { activationsOf, exampleBatch } from "./activations.ts";

/** What a micro-batch of the whole model takes. */
function taken(recipe: Recipe): Promise<number> {
  const { name, batchSize: rows, ...options } = recipe.data;
  const facts = datasets[name].facts(options);
  return scope(async () => {
    const model = buildModel(recipe);
    const arena = new Arena(model);
    const length = facts.length ?? model.context ?? 1;
    const counted = await memoryDuring(() =>
      scope(async () => {
        arena.replaceGradients();
        await forwardIn(recipe)(() => model.loss(exampleBatch(recipe, facts, { rows, length }))).backward();
      }),
    );
    return counted.reduce((a, b) => Math.max(a, b));
  });
}

const large = ["model.width=512", "model.heads=8", "model.layers=6", "model.context=500", "data.batchSize=2"];
const llama = [...large, "model.keyValueHeads=4", "model.hidden=1024"];

it.each<[recipe: string, ...overrides: string[]]>([
  ["gpt-small"],
  ["gpt-small", "precision=bf16", "data.batchSize=2"],
  ["gpt-small", "activationCheckpointing=true", "data.batchSize=8"],
  ["gpt-small", "model.layers=1"],
  ["gpt-small", ...large],
  ["gpt-small", ...large, "model.context=200", "data.batchSize=7"],
  ["gpt-small", ...large, "activationCheckpointing=true"],
  ["gpt-small", "adapter.name=lora", "adapter.targets=all-linear", "adapter.base=bf16"],
  ["llama-small", ...llama],
  ["llama-small", ...llama, "model.architecture=mistral", "model.window=40"],
  ["llama-small", ...llama, "data.name=chat", "data.path=rows.jsonl", "data.packing=wrapped"],
  ["bert-tiny-one-bit-lamb", ...large, "model.width=1024", "model.layers=3"],
  ["deit-tiny-cifar", "model.layers=5"],
  ["resnet18-cifar", "data.batchSize=9"],
])(
  "activations of %s %s %s are those of the whole model, from a few layers and short rows",
  async (name, ...overrides) => {
    const recipe = readRecipe(name, overrides);
    const [said, real] = [await activationsOf(recipe), await taken(recipe)];
    expect(said! / real).toBeGreaterThan(0.93);
    expect(said! / real).toBeLessThan(1.07);
  },
);

it("are not measured with a model that is too large for it, nor with an adapter of a layer by its number", async () => {
  expect(await activationsOf(readRecipe("gpt-small", ["model.width=8192", "model.heads=64"]))).toBeUndefined();
  const ofLayer = ["adapter.name=lora", "adapter.targets=[blocks.3.attention.qkv]"];
  expect(await activationsOf(readRecipe("gpt-small", ofLayer))).toBeUndefined();
});
