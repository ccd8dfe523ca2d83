/**
 * `bench recipe`: the model of gpt-small with few bits and with 32. Four workers in one process train it as `./terse
 * train` would with each method: the same weights and tokens for every method, other ones for every seed. Each method
 * has the best rate and warm-up of a search with the first seed, as in `bench convergence`.
 *
 * Settings with `-1500-steps` train three times as long with two seeds, at the settings that were found for 500 steps.
 * Each setting is recorded alone, and goes on where it was cut off.
 */
import { readRecipe } from "@terse/train/recipe";
import { Known } from "../convergence/known.ts";
import { lossesOf } from "../convergence/losses.ts";
import type { Method as Searching } from "../convergence/methods.ts";
import type { Settings } from "../convergence/search.ts";
import { withSeeds } from "../convergence/searched.ts";
import { overridesOf, searchOf } from "../convergence/settings.ts";
import { Trainers } from "../convergence/trainers.ts";
import type { Measurement } from "../measurement.ts";
import type { Suite } from "../suite.ts";

export const workers = 4;
export const budget = 12; // runs of a search
const seeds = [1, 2, 3];
const every = 20; // steps between evaluations
const known = new Known("recipe");
export const base = "gpt-small-terngrad";

interface Method extends Pick<Searching, "changes" | "lr" | "searchesBeta2"> {
  /** Of apps/train/recipes; `base` unless given. */
  readonly recipe?: string;
  /** Further changes, which depend on the number of steps. */
  readonly ofSteps?: (steps: number) => readonly string[];
}

/** Lion's authors advise ten times AdamW's decay and more. */
const ofLion = (name: string) => [`optimizer.name=${name}`, "optimizer.weightDecay=0.1"];
/** As in the small recipes of Lion and Lion Cub. */
const lion = [...ofLion("lion"), "optimizer.beta2=0.95", "optimizer.clipBy=global"];
const lionCub = [
  ...ofLion("lion-cub"),
  "optimizer.beta2=0.95",
  "optimizer.momentumSync.segments=first-and-last",
  "optimizer.momentumSync.every=10",
];
const oneBitLamb = ["optimizer.name=one-bit-lamb", "optimizer.weightDecay=0.01", "optimizer.warmup=0.2"];

/**
 * What each method changes in its recipe. Another optimizer than AdamW is without its compression of gradients.
 */
export const methods: Readonly<Record<string, Method>> = {
  "adamw-terngrad": { changes: [], lr: 4e-3 },
  "adamw-qsgd": { recipe: "gpt-small", changes: [], lr: 2e-3 },
  adamw: { changes: ["exchange.gradient=null", "optimizer.weightDecay=0.033"], lr: 9e-4 },
  lamb: { changes: ["optimizer.name=lamb", "optimizer.weightDecay=0.01"], lr: 1e-2 },
  "one-bit-lamb": { changes: [...oneBitLamb, "exchange.dense=bf16"], lr: 1e-2 },
  "one-bit-lamb-f32-warmup": { changes: oneBitLamb, lr: "one-bit-lamb" },
  "one-bit-lamb-clip-global": {
    changes: [...oneBitLamb, "exchange.dense=bf16", "optimizer.clipBy=global"],
    lr: "one-bit-lamb",
  },
  "zero-one-adam": {
    recipe: "gpt-small-zero-one-adam",
    changes: [],
    ofSteps: (steps) => ["freeze", "doubling"].map((key) => `optimizer.${key}=${Math.round(steps / 5)}`),
    lr: 1e-3,
  },
  lion: { changes: lion, lr: 5e-4 },
  "lion-cub": { changes: lionCub, lr: 5e-4 },
  "lion-cub-clip-global": { changes: [...lionCub, "optimizer.clipBy=global"], lr: "lion-cub" },
  "distributed-lion": { changes: ofLion("distributed-lion"), lr: 3e-4 },
  "distributed-lion-average": {
    changes: [...ofLion("distributed-lion"), "optimizer.vote=average"],
    lr: "distributed-lion",
  },
  muon: { recipe: "gpt-small-muon", changes: [], lr: 0.02 },
  "local-muon": { recipe: "gpt-small-local-muon", changes: [], lr: 0.02 },
  dion: { recipe: "gpt-small-dion", changes: [], lr: 0.02 },
};

/** Three times as many steps as the recipe has, for the methods that matter most, each alone. */
const longer = 1500;
export const longerSuffix = `-${longer}-steps`;
const trainedLonger = [
  "adamw-terngrad",
  "adamw",
  "one-bit-lamb",
  "zero-one-adam",
  "lion-cub",
  "muon",
  "local-muon",
  "dion",
];

export const recipe: Suite = {
  ...Object.fromEntries(
    Object.keys(methods).map((name) => [name, ({ overrides }) => known.remember(measure(name, overrides))]),
  ),
  ...Object.fromEntries(
    trainedLonger.map((name) => [
      `${name}${longerSuffix}`,
      ({ overrides }) => known.remember(measureLonger(name, overrides)),
    ]),
  ),
};

async function* measure(name: string, given: readonly string[]): AsyncGenerator<Measurement> {
  const method = methods[name]!;
  await using trainers = await Trainers.open(given.length > 0 ? undefined : `recipe/${name}`);
  const train = (settings: Settings, seed: number) => trainers.train(runOf(method, settings, seed, given));
  const searching =
    typeof method.lr === "number"
      ? searchOf(method, method.lr, given)
      : { chosen: known.settings(method.lr, name, given) };
  yield* lossesOf(name, seeds, yield* withSeeds(name, seeds, searching, budget, train));
}

async function* measureLonger(name: string, given: readonly string[]): AsyncGenerator<Measurement> {
  const setting = `${name}${longerSuffix}`;
  await using trainers = await Trainers.open(given.length > 0 ? undefined : `recipe/${setting}`);
  const chosen = known.settings(name, setting, given);
  const changed = [`steps=${longer}`, ...given];
  const train = (seed: number) => trainers.train(runOf(methods[name]!, chosen, seed, changed));
  yield* lossesOf(setting, seeds, { chosen, runs: await Promise.all(seeds.slice(0, 2).map(train)) });
}

/** The warm-up is a part of the run, so it grows with the steps. */
function runOf(
  { recipe: named, changes, ofSteps }: Method,
  settings: Settings,
  seed: number,
  given: readonly string[],
) {
  const recipe = named ?? base;
  const { steps } = readRecipe(recipe, given);
  const own = [...changes, ...(ofSteps?.(steps) ?? []), ...overridesOf(settings, steps)];
  return { recipe, overrides: [...own, ...given, `seed=${seed}`], workers, every };
}
