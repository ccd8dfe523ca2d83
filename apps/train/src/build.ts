/** From the words of a recipe to the things they name. */
import type { Group } from "@terse/collectives";
import { byteTokenizer, type TextData, textData } from "@terse/data";
import { type ChosenSchemes, dense, type Measured, measureLink, voteSchemes } from "@terse/exchange";
import { Gpt, type GptShape, gptPresets } from "@terse/models";
import { type Algorithm, algorithms, Optimizer, OverlapError } from "@terse/optimizers";
import { OptionsError } from "@terse/options";
import { type Arena, manualSeed } from "@terse/tensor";
import { deviceOf } from "./device.ts";
import type { Recipe } from "./recipe.ts";

/** The same weights on every rank and every device: they come from the seed, on the CPU. */
export function buildModel(recipe: Recipe): Gpt {
  const { model, data, seed } = recipe;
  const device = deviceOf(recipe);
  const { name: _, preset, ...given } = model;
  const shape: GptShape = { ...gptPresets[preset], ...without(given, undefined) };
  if (data.blockSize !== undefined && given.context === undefined) shape.context = data.blockSize;
  if (shape.vocabulary < byteTokenizer.vocabulary)
    throw new OptionsError([
      `model.vocabulary: the data has ${byteTokenizer.vocabulary} tokens (bytes), the model only ${shape.vocabulary}`,
    ]);
  manualSeed(seed);
  const gpt = new Gpt(shape);
  return device === "cpu" ? gpt : gpt.to({ device });
}

export async function buildData({ data, seed }: Recipe, model: Gpt, { rank, size }: Group): Promise<TextData> {
  const { name: _, ...options } = data;
  return textData({ blockSize: model.shape.context, ...without(options, undefined), seed, rank, ranks: size });
}

export async function buildOptimizer(recipe: Recipe, arena: Arena, group: Group): Promise<Optimizer> {
  const { optimizer, overlap, bucket, compareEvery } = recipe;
  const { name, lr: _, clip, clipBy, ...options } = optimizer;
  const create = algorithms[name].create as (options: object) => Algorithm;
  const measured = measures(recipe) ? await measureLink(group) : undefined;
  try {
    const schemes = schemesOf(recipe, measured);
    const settings = { algorithm: create(options), clip, clipBy, overlap, compareEvery, schemes };
    return new Optimizer(arena, group, { ...settings, ...without({ bucket, measured }, undefined) });
  } catch (error) {
    const wrong = error instanceof OverlapError || error instanceof RangeError;
    throw wrong ? new OptionsError([error.message]) : error;
  }
}

/** Whether something is chosen by what the network costs. */
const measures = ({ exchange, bucket }: Recipe) => exchange.vote === "auto" || bucket === "auto";

/** What only some ways to vote take. */
const ofVote = {
  ranksPerHost: ["hierarchical"],
  inside: ["hierarchical"],
  width: ["count"],
  chunk: ["all-to-all", "auto"],
} as const;

/** `measured`: for `vote: auto`. */
export function schemesOf({ exchange }: Pick<Recipe, "exchange">, measured?: Measured): ChosenSchemes {
  const { vote, ranksPerHost: hosts, inside, width, chunk } = exchange;
  const problems = (Object.keys(ofVote) as (keyof typeof ofVote)[])
    .filter((key) => exchange[key] !== undefined && !(ofVote[key] as readonly string[]).includes(vote))
    .map((key) => `exchange.${key}: only vote: ${ofVote[key].join(" and ")} has it, and vote is ${vote}`);
  if (vote === "hierarchical" && hosts === undefined)
    problems.push("exchange.ranksPerHost: a hierarchical vote needs to know how many ranks share a host");
  if (problems.length > 0) throw new OptionsError(problems);
  return {
    votes: voteSchemes[vote](without({ hosts, inside, width, chunk, measured }, undefined)),
    means: dense(exchange.dense),
  };
}

function without<T extends object>(options: T, absent: unknown): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== absent)) as never;
}
