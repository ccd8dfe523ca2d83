/**
 * `bench local`: local steps with an outer step, on the small GPT of `bench convergence`, with as many rows in a step
 * of all workers. Each method begins at the settings that the search there has found for what is inside. It searches
 * the rate inside and the outer step with the first seed, or takes what a like method has found. A method is a setting
 * of the suite, and can be measured again alone.
 *
 * Further settings time steps on links (seconds.ts) and the local work of a round (round-work.ts).
 */
import { readRecipe } from "@terse/train/recipe";
import { workers as four, kinds, recipe } from "../convergence/convergence.ts";
import { among, doubling, type Settings } from "../convergence/search.ts";
import { searched } from "../convergence/searched.ts";
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
const unit = "nats/byte";
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

  const { chosen, run: first } =
    typeof method.search === "string"
      ? { chosen: settingsFound(method.search) }
      : yield* searched(
          name,
          { start: beginOf(method), axes: axesOf(method.search), together: [] },
          budget,
          (settings) => train(settings, seeds[0]!),
        );
  const of = method.steps === undefined ? seeds : seeds.slice(0, 1);
  const trained = await Promise.all(of.map((seed, i) => (i === 0 && first) || train(chosen, seed)));
  for (const [i, run] of trained.entries()) {
    const inCase = { case: `${name}, seed ${of[i]}` };
    yield { ...inCase, metric: "validation_loss", value: lossOf(run), unit };
    for (const [setting, value] of Object.entries({ ...settingsInside(method.inside), ...chosen }))
      yield { ...inCase, metric: setting, value, unit: "" };
    for (const { step, loss } of run.points) yield { ...inCase, metric: `loss_at_${step}`, value: loss, unit };
  }
  yield* kinds(name, trained[0]!);
}

const axesOf = (names: readonly (keyof typeof axes)[]) => Object.fromEntries(names.map((name) => [name, axes[name]]));
const lossOf = ({ points }: Trained) => points.at(-1)!.loss;

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
