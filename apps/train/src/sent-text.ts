import { sampleOf } from "./dry-run/phases.ts";
import { bytesText } from "./format.ts";
import { methodsInRun } from "./methods-in-run.ts";
import type { Recipe } from "./recipe.ts";

/**
 * What a rank sends from a step on: "800 kB a step, and 27 kB in the last one", or "27 kB to 800 kB a step" where steps
 * take turns. With local steps "1.2 MB in a round, every 10 steps (120 kB a step)".
 */
export function sentText(
  recipe: Pick<Recipe, "steps" | "optimizer" | "exchange" | "local">,
  bytesOf: (step: number) => number,
  from: number,
): string {
  if (recipe.local) return roundsText(recipe.local, bytesOf, from, recipe.steps);
  const bytes = [from, ...sampleOf(recipe.steps, methodsInRun(recipe).periods, from)].map(bytesOf);
  const runs = bytes.map(bytesText).filter((text, i, all) => text !== all[i - 1]);
  const [first, last] = [runs[0]!, runs.at(-1)!];
  const usual = runs.length > 2 ? `${bytesText(Math.min(...bytes))} to ${bytesText(Math.max(...bytes))}` : first;
  return `${usual} a step${runs.length === 1 ? "" : `, and ${last} in the last one`}`;
}

function roundsText(
  { syncEvery, fragments }: NonNullable<Recipe["local"]>,
  bytesOf: (step: number) => number,
  from: number,
  steps: number,
): string {
  const all = Array.from({ length: Math.min(syncEvery, Math.max(1, steps - from)) }, (_, i) => bytesOf(from + i));
  const every = syncEvery / fragments;
  const inside = every > 1 ? Math.min(...all) : 0; // of a host, in every step
  const rounds = all.filter((bytes) => bytes > inside).map((bytes) => bytes - inside);
  const mean = all.reduce((sum, bytes) => sum + bytes, 0) / all.length;
  const [least, most] = [Math.min(...rounds), Math.max(...rounds)].map(bytesText) as [string, string];
  const inHost = inside > 0 ? `${bytesText(inside)} a step on its host, and ` : "";
  const text = rounds.length === 0 ? "nothing" : least === most ? least : `${least} to ${most}`;
  return `${inHost}${text} in a round, every ${every === 1 ? "step" : `${every} steps`} (${bytesText(mean)} a step)`;
}
