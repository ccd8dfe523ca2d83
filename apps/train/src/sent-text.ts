import { sampleOf } from "./dry-run/phases.ts";
import { bytesText } from "./format.ts";
import { methodsInRun } from "./methods-in-run.ts";
import type { Recipe } from "./recipe.ts";

/**
 * What a rank sends from a step on: "800 kB a step, and 27 kB in the last one", or "27 kB to 800 kB a step" where steps
 * take turns.
 */
export function sentText(
  recipe: Pick<Recipe, "steps" | "optimizer" | "exchange">,
  bytesOf: (step: number) => number,
  from: number,
): string {
  const bytes = [from, ...sampleOf(recipe.steps, methodsInRun(recipe).periods, from)].map(bytesOf);
  const runs = bytes.map(bytesText).filter((text, i, all) => text !== all[i - 1]);
  const [first, last] = [runs[0]!, runs.at(-1)!];
  const usual = runs.length > 2 ? `${bytesText(Math.min(...bytes))} to ${bytesText(Math.max(...bytes))}` : first;
  return `${usual} a step${runs.length === 1 ? "" : `, and ${last} in the last one`}`;
}
