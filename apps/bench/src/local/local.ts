/**
 * `bench local`: local steps with an outer step, on the small GPT of `bench convergence`, with as many rows in a step
 * of all workers. Each method begins at the settings that the search there has found for what is inside. It searches
 * the rate inside and the outer step with the first seed, or takes what a like method has found. A method is a setting
 * of the suite, and can be measured again alone.
 *
 * Further settings time steps on links (seconds.ts) and the local work of a round (round-work.ts).
 */
import { readRecipe } from "@terse/train/recipe";
import { workers as four, recipe } from "../convergence/convergence.ts";
import { lossesOf } from "../convergence/losses.ts";
import { among, doubling, type Settings } from "../convergence/search.ts";
import { withSeeds } from "../convergence/searched.ts";
import { Trainers } from "../convergence/trainers.ts";
import type { Trained } from "../convergence/training.ts";
import type { Measurement } from "../measurement.ts";
import { recordedValues } from "../papers/recorded.ts";
import type { Suite } from "../suite.ts";
import { type LocalMethod, methods } from "./methods.ts";
import { beginOf, overridesFor, settingsInside } from "./overrides-for.ts";
import { roundWork } from "./round-work.ts";
import { overNoExchange, type RateName, rates, seconds } from "./seconds.ts";

const seeds = [1, 2, 3];
export const budget = 12; // runs of a search
const evaluations = 20; // of a run
const axes = { lr: doubling, outer_lr: among([0.4, 0.7, 1]), momentum: among([0, 0.6, 0.9]) };

export const local: Suite = {
  ...Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, ({ overrides }) => losses(name, method, overrides)]),
  ),
  ...Object.fromEntries(Object.keys(rates).map((rate) => [rate, () => seconds(rate as RateName)])),
  "10mbit-200ms": overNoExchange,
  "round-work": () => roundWork(),
};

async function* losses(name: string, method: LocalMethod, given: readonly string[]): AsyncGenerator<Measurement> {
  await using trainers = await Trainers.open(given.length > 0 ? undefined : `local/${name}`);
  const { workers = four } = method;
  const { steps = readRecipe(recipe, given).steps } = method;
  const train = (settings: Settings, seed: number): Promise<Trained> =>
    trainers.train({
      recipe,
      overrides: [...overridesFor(method, settings, given), `seed=${seed}`],
      workers,
      every: Math.max(1, Math.round(steps / evaluations)),
    });

  const searching =
    typeof method.search === "string"
      ? { chosen: settingsFound(method.search) }
      : { start: beginOf(method), axes: axesOf(method.search), together: [] };
  const of = method.steps === undefined ? seeds : seeds.slice(0, 1);
  const { chosen, runs } = yield* withSeeds(name, of, searching, budget, train);
  yield* lossesOf(name, of, { chosen: { ...settingsInside(method.inside), ...chosen }, runs });
}

const axesOf = (names: readonly (keyof typeof axes)[]) => Object.fromEntries(names.map((name) => [name, axes[name]]));

/** What the search of another method of this suite has found, as it is recorded. */
function settingsFound(owner: string): Settings {
  const found = recordedValues("local").get(`${owner}, seed 1`);
  const settings = Object.keys(axes).map((name) => [name, found?.get(name)] as const);
  if (settings.some(([, value]) => value === undefined))
    throw new Error(
      `it takes the settings of ${owner}, which are not recorded: ./terse bench local --settings ${owner} --record`,
    );
  return Object.fromEntries(settings) as Settings;
}
