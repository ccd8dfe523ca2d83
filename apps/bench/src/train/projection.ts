/**
 * `projection`: a training step at the model sizes of the papers, which no machine here can train in a sensible time.
 *
 *   measured    on this machine: forward and backward of one row, times the rows; the optimizer's step without other
 *               ranks; the codecs' speed
 *   given       the link's α and β
 *   predicted   from these, by the code that a dry run uses: the time of the messages, and what of it backward hides
 */
import { loopback } from "@terse/collectives";
import type { Model } from "@terse/models";
import { Arena, manualSeed, scope, setNumThreads } from "@terse/tensor";
import { buildModel, makeOptimizer } from "@terse/train/build";
import { recipeOfCandidate } from "@terse/train/candidates";
import { type Plan, planOf } from "@terse/train/plan";
import { type Recipe, readRecipe } from "@terse/train/recipe";
import { maskedTextOf, textOf } from "../batches.ts";
import { type Measurement, median } from "../measurement.ts";

/** A recipe of a paper's size, and what the table calls its model and its method. */
interface Projected {
  readonly recipe: string;
  readonly model: string;
  readonly method: string;
  /** A step after the warm-up, whose messages count. */
  readonly late?: true;
}

const projected: readonly Projected[] = [
  { recipe: "gpt-124m-lion-cub", model: "GPT 124M", method: "Lion Cub, 1 bit" },
  { recipe: "gpt-350m-distributed-lion", model: "GPT 350M", method: "Distributed Lion, majority" },
  { recipe: "gpt-120m-dion", model: "GPT 124M", method: "Dion, r = d/4" },
  { recipe: "bert-large-one-bit-lamb", model: "BERT-Large", method: "1-bit LAMB", late: true },
];
const worlds = [8, 64];
export const links = { "100mbit": 1e8, "1gbit": 1e9, "10gbit": 1e10 };
export const projectedSuffix = ", projection"; // of the names of cases
const latency = 50e-6; // seconds, as between machines of one switch
const repetitions = 3;

export async function* projection(): AsyncGenerator<Measurement> {
  setNumThreads(1);
  for (const { recipe: name, model, method, late } of projected) {
    const recipe = readRecipe(new URL(`../../../train/recipes/${name}.yaml`, import.meta.url), []);
    const dense = recipeOfCandidate(recipe, {
      name: "dense",
      optimizer: { name: "adamw" },
      exchange: { dense: "f32" },
    });
    const warm: Recipe = late
      ? { ...recipe, optimizer: { ...recipe.optimizer, warmup: 1 } as Recipe["optimizer"] }
      : recipe;
    const { row, updates } = await measured([warm, dense]);
    const [update, denseUpdate] = updates as [number, number];
    const flops = (await operationsOfRow(recipe)) / row;
    const inCase = { case: `${model}, ${method}${projectedSuffix}` };
    yield { ...inCase, metric: "row_ms", value: 1000 * row, unit: "ms" };
    yield { ...inCase, metric: "update_ms", value: 1000 * update, unit: "ms" };
    yield { ...inCase, metric: "dense_update_ms", value: 1000 * denseUpdate, unit: "ms" };
    for (const ranks of worlds)
      for (const [rate, bitsPerSecond] of Object.entries(links)) {
        const link = { bitsPerSecond, latency };
        const time = async (of: Recipe, updating: number) => {
          const plan = await planOf(of, ranks, { link, speed: { flops, measured: true } });
          const { computing, messages, exposed } = (late ? plan.phases.at(-1) : plan.phases[0])!.time!;
          return { step: computing + updating + exposed, messages };
        };
        const [mine, theirs] = [await time(recipe, update), await time(dense, denseUpdate)];
        const onLink = { case: `${model}, ${method} ×${ranks} ${rate}${projectedSuffix}` };
        yield { ...onLink, metric: "step_ms", value: 1000 * mine.step, unit: "ms" };
        yield { ...onLink, metric: "dense_step_ms", value: 1000 * theirs.step, unit: "ms" };
        yield { ...onLink, metric: "speedup_over_dense", value: theirs.step / mine.step, unit: "ratio" };
        yield { ...onLink, metric: "messages_over_dense", value: theirs.messages / mine.messages, unit: "ratio" };
      }
  }
}

/**
 * Seconds on one rank: forward and backward of a row, and a step of each recipe's optimizer. The first step is left
 * out.
 */
async function measured(recipes: readonly [own: Recipe, dense: Recipe]): Promise<{ row: number; updates: number[] }> {
  const [recipe] = recipes;
  manualSeed(0);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  try {
    const row = await timed(async () => {
      arena.replaceGradients();
      await model.loss(rowOf(model, recipe)).backward();
    });
    const updates: number[] = [];
    for (const of of recipes) {
      const [group] = loopback(1);
      const here: Recipe = { ...of, compareEvery: 0, overlap: "off" };
      await using optimizer = makeOptimizer(here, arena, group!, {});
      updates.push(await timed(async () => void (await optimizer.step({ lr: 0, loss: 0 }))));
      await group!.close();
    }
    return { row, updates };
  } finally {
    arena[Symbol.dispose]();
    model.dispose();
  }
}

/** Median seconds of a few calls. */
async function timed(work: () => Promise<void>): Promise<number> {
  const seconds: number[] = [];
  for (let i = 0; i <= repetitions; i++) {
    const began = performance.now();
    await scope(work);
    if (i > 0) seconds.push((performance.now() - began) / 1000);
  }
  return median(seconds);
}

/** A batch of one row of random words; which words does not change the time. */
function rowOf({ context }: Model, { model: { name } }: Recipe): object {
  const shape = { context: context!, vocabulary: 256 };
  return name === "gpt" ? textOf(1, shape) : maskedTextOf(1, shape);
}

/** What a dry run counts for forward and backward of one row. */
async function operationsOfRow(recipe: Recipe): Promise<number> {
  const one: Recipe = { ...recipe, accumulate: 1, data: { ...recipe.data, batchSize: 1 } };
  const link = { bitsPerSecond: 1e9, latency };
  const plan: Plan = await planOf(one, 2, { link, speed: { flops: 1, measured: false } });
  return plan.phases[0]!.time!.computing;
}
