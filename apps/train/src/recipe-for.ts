import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe, readRecipe, resumedRecipe } from "./recipe.ts";
import { locateRun, readSave, recipeFile } from "./saves/save-folder.ts";

/** The recipe that the command line names: that of a run to resume, a file, or the default one. With `--resume auto` that of a new run. */
export function recipeFor({ resume, recipe, overrides }: TrainArguments): Recipe {
  if (resume === undefined || resume === "auto") return readRecipe(recipe ?? defaultRecipe, overrides);
  const { run } = locateRun(resume);
  const file = join(run, recipeFile);
  const text = existsSync(file) ? readFileSync(file, "utf8") : undefined;
  return resumedRecipe(readSave(resume).manifest, text, overrides, run).recipe;
}
