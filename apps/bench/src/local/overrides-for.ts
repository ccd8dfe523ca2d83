/** The changes of the recipe by which a method of `bench local` trains. */
import { readRecipe } from "@terse/train/recipe";
import { workers as four, recipe } from "../convergence/convergence.ts";
import { methods as inner } from "../convergence/methods.ts";
import type { Settings } from "../convergence/search.ts";
import { chosenIn, overridesOf } from "../convergence/settings.ts";
import { recordedValues } from "../papers/recorded.ts";
import type { LocalMethod } from "./methods.ts";

/** `given`: further changes. */
export function overridesFor(method: LocalMethod, settings: Settings, given: readonly string[]): string[] {
  const { inside, syncEvery, changes, workers = four } = method;
  const more = [...given, ...(method.steps === undefined ? [] : [`steps=${method.steps}`])];
  const { steps, data } = readRecipe(recipe, more);
  const { lr, outer_lr, momentum } = settings;
  const { lr: _, ...fixed } = settingsInside(inside);
  const outer = `local.optimizer={name: sgd, lr: ${outer_lr}, momentum: ${momentum}, nesterov: ${momentum! > 0}}`;
  return [
    ...inner[inside]!.changes,
    ...overridesOf({ ...fixed, lr: lr! }, steps),
    ...(syncEvery === undefined ? [] : [`local.syncEvery=${syncEvery}`, outer]),
    ...changes,
    ...(workers === four ? [] : [`data.batchSize=${(data.batchSize * four) / workers}`]),
    ...more,
  ];
}

/** Where the search of a method begins. */
export function beginOf({ inside, outer }: LocalMethod): Settings {
  return { lr: settingsInside(inside)["lr"]!, outer_lr: outer.lr, momentum: outer.momentum };
}

/** What the search of `bench convergence` has found for a method. */
export function settingsInside(inside: string): Settings {
  const found = recordedValues("convergence").get(`${inside}, seed 1`);
  const settings = chosenIn((metric) => found?.get(metric));
  if (settings["lr"] === undefined)
    throw new Error(
      `it begins at the settings of ${inside}, which are not recorded: ./terse bench convergence --settings ${inside} --record`,
    );
  return settings;
}
