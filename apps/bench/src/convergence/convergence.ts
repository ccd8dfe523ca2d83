/**
 * `bench convergence`: compares training with one bit and with 32 bits. Trains the default recipe with four workers in one process, as
 * `./terse train` would with each method: the same weights and tokens for every method, other ones for every seed, which is a setting here.
 */
import { type Group, loopback } from "@terse/collectives";
import { Arena, scope } from "@terse/tensor";
import { buildData, buildModel, buildOptimizer } from "@terse/train/build";
import { evaluate } from "@terse/train/evaluate";
import { defaultRecipe, type Recipe, readRecipe } from "@terse/train/recipe";
import { learningRate } from "@terse/train/schedule";
import type { Measurement } from "../measurement.ts";
import type { Suite } from "../suite.ts";

export const workers = 4;
const windows = 128; // of the held-out text
const every = 20; // steps between evaluations

/** What each method changes in the recipe. AdamW steps further: Lion's authors advise a third to a tenth of its lr, and as much more decay. */
export const methods: Readonly<Record<string, (recipe: Recipe) => readonly string[]>> = {
  "adamw, 32 bit": (recipe) => [
    "optimizer.name=adamw",
    `optimizer.lr=${short(3 * recipe.optimizer.lr)}`,
    `optimizer.weightDecay=${short(weightDecayOf(recipe) / 3)}`,
  ],
  "lion, 32 bit": () => ["optimizer.name=lion"],
  "lion-cub, 1 bit": () => [],
  "lion-cub, 1 bit, clipped when backward has ended": () => ["optimizer.clipBy=global"],
  "distributed-lion, majority": () => ["optimizer.name=distributed-lion"],
  "distributed-lion, average": () => ["optimizer.name=distributed-lion", "optimizer.vote=average"],
};

/** All optimizers have it. */
export const weightDecayOf = ({ optimizer }: Recipe): number =>
  (optimizer as unknown as { weightDecay: number }).weightDecay;

const short = (value: number) => Number(value.toPrecision(2));

export const convergence: Suite = Object.fromEntries(
  [1, 2, 3].map((seed) => [`seed-${seed}`, ({ overrides }) => measure(seed, overrides)]),
);

/** `loss_at_STEP` is the validation loss, in nats per byte; the last of them is also `validation_loss`. */
async function* measure(seed: number, overrides: readonly string[]): AsyncGenerator<Measurement> {
  for (const [method, changes] of Object.entries(methods)) {
    const given = [...overrides, `seed=${seed}`];
    const recipe = readRecipe(defaultRecipe, [...changes(readRecipe(defaultRecipe, given)), ...given]);
    const { points, bytesPerStep } = await run(method, recipe);
    const unit = "nats/byte";
    yield { case: method, metric: "validation_loss", value: points.at(-1)!.loss, unit };
    yield { case: method, metric: "sent_per_step", value: bytesPerStep, unit: "B" };
    for (const { step, loss } of points) yield { case: method, metric: `loss_at_${step}`, value: loss, unit };
  }
}

interface Outcome {
  readonly bytesPerStep: number; // sent by one worker
  readonly points: readonly { step: number; loss: number }[];
}

async function run(method: string, recipe: Recipe): Promise<Outcome> {
  const groups = loopback(workers);
  try {
    const [first] = await Promise.all(groups.map((group) => worker(method, recipe, group)));
    return first!;
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

async function worker(method: string, recipe: Recipe, group: Group): Promise<Outcome> {
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const data = await buildData(recipe, model, group);
  await using optimizer = await buildOptimizer(recipe, arena, group);
  const schedule = { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr };
  const progress = (text: string) =>
    group.rank === 0 && process.stderr.isTTY && process.stderr.write(`\r\x1b[2K${text}`);
  const points: { step: number; loss: number }[] = [];
  const evaluated = async (step: number) =>
    points.push({ step, loss: (await evaluate(model, data, windows, group))["loss"]! });
  for (let step = 0; step < recipe.steps; step++) {
    if (step % every === 0) await evaluated(step);
    await scope(async () => {
      arena.zeroGradients();
      const lr = learningRate(step, schedule);
      let loss = 0;
      for (const batch of await data.next(recipe.accumulate))
        await scope(async () => {
          const share = model.loss(batch).div(recipe.accumulate);
          loss += share.item();
          if (batch.last) await optimizer.begin({ lr, loss });
          await share.backward();
        });
      await optimizer.step({ lr, loss });
    });
    progress(`${method}: step ${step + 1} of ${recipe.steps}`);
  }
  progress("");
  await evaluated(recipe.steps);
  return { bytesPerStep: optimizer.bytesSent(), points };
}
