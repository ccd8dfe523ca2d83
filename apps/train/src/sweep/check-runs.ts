/** The dry check of every run of a sweep, before the first one begins. */
import { join } from "node:path";
import { CheckpointError, mayExist } from "@terse/checkpoint";
import { OptionsError } from "@terse/options";
import { planOf } from "../dry-run/plan.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import type { Recipe } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { recipeOfRun } from "../results/recipe-of-run.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { savesIn } from "../saves/save-folder.ts";
import { combinationText, overridesOf, type PlannedRun, type SweepPlan } from "./sweep-plan.ts";

export interface CheckedRuns {
  /** Of every run, by its name. */
  readonly recipes: ReadonlyMap<string, Recipe>;
  /** Of one rank, at most, as a dry run counts it: without activations. */
  readonly bytesPerRank: number;
}

/**
 * `recipe`: its name or file; undefined for the default one. `folder`: of a sweep that goes on; its runs that have a
 * save have their own recipe, and need no initial weights. Throws `OptionsError` with a line for each combination that
 * cannot run.
 */
export async function checkRuns(
  recipe: string | undefined,
  plan: Pick<SweepPlan, "overrides" | "ranks" | "runs" | "flags">,
  folder?: string,
): Promise<CheckedRuns> {
  const initFrom = plan.flags.find((flag) => flag.startsWith("--init-from="))?.slice("--init-from=".length);
  const newHead = plan.flags.includes("--new-head");
  const saved = folder === undefined ? new Map<string, Recipe>() : savedRecipes(folder, plan.runs);
  const isAllSaved = saved.size === plan.runs.length;
  const weights = initFrom === undefined || isAllSaved ? undefined : await readInitialWeights(initFrom);
  const combinations = [...Map.groupBy(plan.runs, combinationText)];
  const recipes = new Map<string, Recipe>();
  const problems: { readonly combination: string; readonly line: string }[] = [];
  let bytesPerRank = 0;
  for (const [combination, runs] of combinations)
    try {
      for (const run of runs) {
        const overrides = overridesOf(plan, run);
        const given = { ...(recipe !== undefined && { recipe }), ...(newHead && { newHead: true as const }) };
        recipes.set(run.name, saved.get(run.name) ?? recipeFor({ ...given, overrides }, weights));
      }
      const { memory } = await planOf(checkData(recipes.get(runs[0]!.name)!), plan.ranks);
      const bytes = Object.values(memory).reduce((sum, each) => sum + each, 0);
      bytesPerRank = Math.max(bytesPerRank, bytes);
    } catch (error) {
      if (!(error instanceof OptionsError)) throw error;
      problems.push(...error.lines.map((line) => ({ combination, line })));
    }
  if (problems.length > 0) throw new OptionsError(linesOf(problems, combinations.length));
  checkDifferent(plan.runs, recipes);
  return { recipes, bytesPerRank };
}

/** The recipes of those runs that go on from a save. */
function savedRecipes(folder: string, runs: readonly PlannedRun[]): Map<string, Recipe> {
  const found = new Map<string, Recipe>();
  for (const { name } of runs.filter((run) => savesIn(join(folder, run.name)).length > 0))
    try {
      found.set(name, recipeOfRun(join(folder, name)));
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error; // the run itself says it
    }
  return found;
}

/** What is wrong in all combinations is said once. */
function linesOf(problems: readonly { combination: string; line: string }[], combinations: number): string[] {
  const byLine = [...Map.groupBy(problems, ({ line }) => line)];
  return byLine.flatMap(([line, same]) =>
    same.length === combinations || same[0]!.combination === ""
      ? [line]
      : same.map(({ combination }) => `${combination}: ${line}`),
  );
}

function checkData(given: Recipe): Recipe {
  const recipe = withOwnDataPath(given);
  const { path } = recipe.data as { path?: string };
  if (path !== undefined && !mayExist(path))
    throw new OptionsError([`data.path: there is no file or folder at ${path}`]);
  return recipe;
}

/** Throws `OptionsError` where two runs would be the same one. */
function checkDifferent(runs: readonly PlannedRun[], recipes: ReadonlyMap<string, Recipe>): void {
  const same = [...Map.groupBy(runs, ({ name }) => JSON.stringify(recipes.get(name))).values()].find(
    ({ length }) => length > 1,
  );
  if (same)
    throw new OptionsError([
      `${same[0]!.name} and ${same[1]!.name} have the same recipe: leave out a key or a value that changes nothing`,
    ]);
}
