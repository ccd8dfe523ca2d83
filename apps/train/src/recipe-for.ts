import type { TrainArguments } from "./arguments.ts";
import { embedded, type Recipe, readRecipe, resumedRecipe } from "./recipe.ts";
import { recipeOf } from "./run.ts";

/** The recipe that the command line asks for: a run's own, a file's, or the embedded one. */
export function recipeFor({ resume, recipe, overrides }: TrainArguments): Recipe {
  return resume === undefined ? readRecipe(recipe ?? embedded, overrides) : resumedRecipe(recipeOf(resume), overrides);
}
