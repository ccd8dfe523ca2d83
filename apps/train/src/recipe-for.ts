import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe, readRecipe, resumedRecipe } from "./recipe.ts";
import { locateRun, readRecipeText, readSave } from "./saves/save-folder.ts";

/** The recipe that the command line names: that of a run to resume, a file, or the default one. With `--resume auto` that of a new run. */
export function recipeFor({ resume, recipe, overrides }: TrainArguments): Recipe {
  if (resume === undefined || resume === "auto") return readRecipe(recipe ?? defaultRecipe, overrides);
  const { run } = locateRun(resume);
  return resumedRecipe(readSave(resume).manifest, readRecipeText(run), overrides, run).recipe;
}
