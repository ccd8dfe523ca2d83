/** From the words of a recipe to the things they name. */
import type { Group } from "@terse/collectives";
import { byteTokenizer, type TextData, textData } from "@terse/data";
import { Gpt, type GptShape, gptPresets } from "@terse/models";
import { type Algorithm, algorithms, Optimizer, OverlapError } from "@terse/optimizers";
import { OptionsError } from "@terse/options";
import { type Arena, manualSeed } from "@terse/tensor";
import type { Recipe } from "./recipe.ts";

/** The same weights on every rank: they come from the seed. */
export function buildModel({ model, data, seed }: Recipe): Gpt {
  const { name: _, preset, ...given } = model;
  const shape: GptShape = { ...gptPresets[preset], ...without(given, undefined) };
  if (data.blockSize !== undefined && given.context === undefined) shape.context = data.blockSize;
  if (shape.vocabulary < byteTokenizer.vocabulary)
    throw new OptionsError([
      `model.vocabulary: the data has ${byteTokenizer.vocabulary} tokens (bytes), the model only ${shape.vocabulary}`,
    ]);
  manualSeed(seed);
  return new Gpt(shape);
}

export async function buildData({ data, seed }: Recipe, model: Gpt, { rank, size }: Group): Promise<TextData> {
  const { name: _, ...options } = data;
  return textData({ blockSize: model.shape.context, ...without(options, undefined), seed, rank, ranks: size });
}

export function buildOptimizer(recipe: Recipe, arena: Arena, group: Group): Optimizer {
  const { optimizer, overlap, bucket, compareEvery } = recipe;
  const { name, lr: _, clip, clipBy, ...options } = optimizer;
  const create = algorithms[name].create as (options: object) => Algorithm;
  try {
    const settings = { algorithm: create(options), clip, clipBy, overlap, compareEvery };
    return new Optimizer(arena, group, bucket === undefined ? settings : { ...settings, bucket });
  } catch (error) {
    throw error instanceof OverlapError ? new OptionsError([error.message]) : error;
  }
}

function without<T extends object>(options: T, absent: unknown): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== absent)) as never;
}
