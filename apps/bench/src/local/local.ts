/**
 * `bench local`: local steps with an outer step, on the small GPT of `bench convergence` with four workers and as many
 * steps. Each method begins at the settings that the search there has found for what is inside, and searches the rate
 * inside and the outer step with the first seed. A method is a setting of the suite, and can be measured again alone.
 */
import { readRecipe } from "@terse/train/recipe";
import { kinds, recipe, workers } from "../convergence/convergence.ts";
import { methods as inner } from "../convergence/methods.ts";
import { among, doubling, refinedRate, type Settings, search } from "../convergence/search.ts";
import { chosenIn, nameOf, overridesOf } from "../convergence/settings.ts";
import { Trainers } from "../convergence/trainers.ts";
import type { Trained } from "../convergence/training.ts";
import type { Measurement } from "../measurement.ts";
import { recordedValues } from "../papers/recorded.ts";
import type { Suite } from "../suite.ts";
import { type LocalMethod, methods } from "./methods.ts";

const seeds = [1, 2, 3];
const budget = 12; // runs of a search
const every = 50; // steps between evaluations
const unit = "nats/byte";

export const local: Suite = Object.fromEntries(
  Object.entries(methods).map(([name, method]) => [name, ({ overrides }) => losses(name, method, overrides)]),
);

async function* losses(name: string, method: LocalMethod, given: readonly string[]): AsyncGenerator<Measurement> {
  await using trainers = await Trainers.open();
  const { steps } = readRecipe(new URL(recipe), given);
  const found = recordedValues("convergence").get(`${method.inside}, seed 1`);
  const { lr: start, ...fixed } = chosenIn((metric) => found?.get(metric));
  if (start === undefined)
    throw new Error(
      `it begins at the settings of ${method.inside}, which are not recorded: ./terse bench convergence --settings ${method.inside} --record`,
    );
  const train = ({ lr, outer_lr, momentum }: Settings, seed: number): Promise<Trained> => {
    const outer = `local.optimizer={name: sgd, lr: ${outer_lr}, momentum: ${momentum}, nesterov: ${momentum! > 0}}`;
    const overrides = [
      ...inner[method.inside]!.changes,
      ...overridesOf({ ...fixed, lr: lr! }, steps),
      `local.syncEvery=${method.syncEvery}`,
      outer,
      ...method.wire,
      ...given,
      `seed=${seed}`,
    ];
    return trainers.train({ recipe, overrides, workers, every });
  };

  const runs = new Map<string, Trained>();
  const axes = { lr: doubling, outer_lr: among([0.4, 0.7, 1]), momentum: among([0, 0.6, 0.9]) };
  const lossAt = async (settings: Settings) => {
    const run = await train(settings, seeds[0]!);
    runs.set(nameOf(settings), run);
    return lossOf(run);
  };
  const begin: Settings = { lr: start, outer_lr: method.outer.lr, momentum: method.outer.momentum };
  const { tried, atEdge } = await search(begin, axes, lossAt, { most: budget, refined: refinedRate });
  for (const { settings, loss } of tried)
    yield { case: `${name}, search`, metric: `loss_at_${nameOf(settings)}`, value: loss, unit };
  for (const setting of atEdge) yield { case: `${name}, search`, metric: `${setting}_at_edge`, value: 1, unit: "" };

  const { settings: chosen } = tried[0]!;
  const others = await Promise.all(seeds.slice(1).map((seed) => train(chosen, seed)));
  const trained = [runs.get(nameOf(chosen))!, ...others];
  for (const [i, run] of trained.entries()) {
    const inCase = { case: `${name}, seed ${seeds[i]}` };
    yield { ...inCase, metric: "validation_loss", value: lossOf(run), unit };
    for (const [setting, value] of Object.entries(chosen)) yield { ...inCase, metric: setting, value, unit: "" };
    for (const { step, loss } of run.points) yield { ...inCase, metric: `loss_at_${step}`, value: loss, unit };
  }
  yield* kinds(name, trained[0]!);
}

const lossOf = ({ points }: Trained) => points.at(-1)!.loss;
