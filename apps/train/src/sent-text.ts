import { sampleOf } from "./dry-run/phases.ts";
import { bytesText } from "./format.ts";
import { methodsInRun } from "./methods-in-run.ts";
import type { Recipe } from "./recipe.ts";

type Given = Pick<Recipe, "steps" | "optimizer" | "exchange" | "local">;

/**
 * What a rank sends from a step on: "800 kB a step, and 27 kB in the last one", or "27 kB to 800 kB a step" where steps
 * take turns. With local steps "1.2 MB in a round, every 10 steps (120 kB a step)", and what a rank sends the others of
 * its host in the steps that they take together: `insideOf`.
 */
export function sentText(
  recipe: Given,
  bytesOf: (step: number) => number,
  from: number,
  insideOf: (step: number) => number = () => 0,
): string {
  if (recipe.local) return roundsText(recipe, recipe.local, bytesOf, from, insideOf);
  const { usual, last } = textsOf(recipe, bytesOf, from);
  return `${usual} a step${last === undefined ? "" : `, and ${last} in the last one`}`;
}

/** What all steps from `from` on send, and the last one where it differs. */
function textsOf(recipe: Given, bytesOf: (step: number) => number, from: number) {
  const bytes = [from, ...sampleOf(recipe.steps, methodsInRun(recipe).periods, from)].map(bytesOf);
  const runs = bytes.map(bytesText).filter((text, i, all) => text !== all[i - 1]);
  const usual = runs.length > 2 ? rangeText(bytes) : runs[0]!;
  return { usual, last: runs.length === 1 ? undefined : runs.at(-1)! };
}

function roundsText(
  recipe: Given,
  { syncEvery, fragments }: NonNullable<Recipe["local"]>,
  bytesOf: (step: number) => number,
  from: number,
  insideOf: (step: number) => number,
): string {
  const { steps } = recipe;
  const every = syncEvery / fragments;
  const inside = textsOf(recipe, insideOf, from);
  // The steps that use the next round of each fragment, and the last one; a run may end sooner.
  const each = Array.from({ length: fragments }, (_, i) => i * every);
  const next = every * (Math.floor(from / every) + 1) - 1;
  const firsts = each.map((later) => (from < steps ? Math.min(next + later, steps - 1) : next + later));
  const lasts = each.map((sooner) => steps - 1 - sooner).filter((step) => step >= firsts[0]!);
  const bytesIn = (used: readonly number[]) => used.map((step) => bytesOf(step) - insideOf(step));
  const [rounds, ends] = [bytesIn(firsts), bytesIn(lasts)];
  const last = ends.length === fragments && rangeText(ends) !== rangeText(rounds) ? rangeText(ends) : undefined;
  const round = rounds.every((bytes) => bytes === 0) ? "nothing" : rangeText(rounds);
  const some = Array.from({ length: Math.min(syncEvery, Math.max(1, steps - from), 1000) }, (_, i) => from + i);
  const mean = meanOf(some.map(insideOf)) + meanOf(rounds) / Math.min(every, steps);
  const onHost =
    insideOf(from) === 0
      ? ""
      : `${inside.usual} a step on its host${inside.last === undefined ? "" : ` (${inside.last} in the last one)`}, and `;
  const atEnd = last === undefined ? "" : `, and ${last} in the last ${fragments === 1 ? "one" : fragments}`;
  return `${onHost}${round} in a round, ${everyText(every)} (${bytesText(Math.round(mean))} a step)${atEnd}`;
}

const meanOf = (all: readonly number[]) => all.reduce((sum, each) => sum + each, 0) / all.length;

/** "every step", "every 5 steps" */
export const everyText = (steps: number): string => (steps === 1 ? "every step" : `every ${steps} steps`);

/** "1.2 kB", or "27 kB to 800 kB" where amounts differ. */
function rangeText(bytes: readonly number[]): string {
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)].map(bytesText) as [string, string];
  return least === most ? least : `${least} to ${most}`;
}
