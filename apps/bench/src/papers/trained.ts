/** Rows that train: the small GPT of `bench convergence`, by settings that its search has found. */
import { readRecipe } from "@terse/train/recipe";
import { recipe } from "../convergence/convergence.ts";
import { methods, settingsOwner } from "../convergence/methods.ts";
import { chosenIn, overridesOf } from "../convergence/settings.ts";
import { type Reading, reading } from "./item.ts";
import { trainAll } from "./kept-runs.ts";
import { recordedValues } from "./recorded.ts";

/** What one of a row's trainings changes. */
export interface Trial {
  /** Its name in the row's metrics. */
  readonly name: string;
  /** Of `bench convergence`: its changes, and the settings that its search has found. */
  readonly method: string;
  readonly changes?: readonly string[];
  readonly workers?: number; // 4 unless given
}

interface Plan {
  readonly row: string;
  readonly trials: readonly Trial[];
  readonly seeds: readonly number[];
  readonly steps?: number; // 400 unless given
  /** Replaces `recipe.yaml` of the convergence suite. */
  readonly recipe?: string;
}

/** Yields "loss of NAME, seed K" for every trial and seed. */
export async function* losses({ row, trials, seeds, steps = 400, recipe: of = recipe }: Plan): AsyncGenerator<Reading> {
  const runs = trials.flatMap((trial) =>
    seeds.map((seed) => ({
      metric: `loss of ${trial.name}, seed ${seed}`,
      run: {
        recipe: of,
        overrides: [...overridesFor(trial, steps), `seed=${seed}`, `steps=${steps}`],
        workers: trial.workers ?? 4,
        every: steps,
      },
    })),
  );
  const trained = await trainAll(
    row,
    runs.map(({ run }) => run),
  );
  for (const [i, { metric }] of runs.entries()) yield reading(metric, trained[i]!.points.at(-1)!.loss, "nats/byte");
}

/** The method's changes, its settings, and the trial's own changes. */
export function overridesFor({ method, changes = [] }: Trial, steps: number): string[] {
  const owner = settingsOwner(method);
  const found = recordedValues("convergence").get(`${owner}, seed 1`);
  const lr = methods[owner]!.lr as number;
  const chosen = chosenIn((metric) => found?.get(metric) ?? (metric === "lr" ? lr : undefined));
  const given = new Set(changes.map((word) => word.split("=")[0]));
  const own = [...methods[method]!.changes, ...overridesOf(chosen, steps)];
  return [...own.filter((word) => !given.has(word.split("=")[0])), ...changes];
}

/** The steps of the recipe that rows train for. */
export const usualSteps = readRecipe(new URL(recipe), []).steps;
