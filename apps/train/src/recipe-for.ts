import { applyOverrides } from "@terse/options";
import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe, readRecipe } from "./recipe.ts";
import { resumedRecipe } from "./resumed-recipe.ts";
import { type InitialWeights, recipeOfWeights } from "./saves/initial-weights.ts";
import { locateRun, readRecipeText, readSave } from "./saves/save-folder.ts";

export type RecipeArguments = Pick<TrainArguments, "resume" | "recipe" | "overrides" | "newHead">;

/**
 * The recipe that the command line names: that of a run to resume, a file, or the default one. With `--resume auto`
 * that of a new run.
 */
export function recipeFor({ resume, recipe, overrides, newHead }: RecipeArguments, weights?: InitialWeights): Recipe {
  if (resume === undefined || resume === "auto")
    return readRecipe(recipe ?? defaultRecipe, overrides, (file) =>
      weights
        ? recipeOfWeights(weights, { file, commandLine: applyOverrides({}, overrides), newHead: newHead === true })
        : {},
    );
  const { run } = locateRun(resume);
  return resumedRecipe(readSave(resume).manifest, readRecipeText(run), overrides, run).recipe;
}
