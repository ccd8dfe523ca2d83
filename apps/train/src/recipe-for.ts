import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe, readRecipe, resumedRecipe } from "./recipe.ts";
import { recipeOf } from "./run.ts";

/** The recipe that the command line names: that of a run to resume, a file, or the default one. */
export function recipeFor({ resume, recipe, overrides }: TrainArguments): Recipe {
  return resume === undefined
    ? readRecipe(recipe ?? defaultRecipe, overrides)
    : resumedRecipe(recipeOf(resume), overrides);
}
