import { resolve } from "node:path";
import { applyOverrides, OptionsError } from "@terse/options";
import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe, readRecipe } from "./recipe.ts";
import { resumedRecipe } from "./resumed-recipe.ts";
import { type InitialWeights, recipeOfWeights } from "./saves/initial-weights.ts";
import { locateRun, readRecipeText, readSave, savesIn } from "./saves/save-folder.ts";

export type RecipeArguments = Pick<TrainArguments, "resume" | "recipe" | "overrides" | "newHead">;

/** Whether `--resume auto` finds a save on this disk. The run that goes on has its own recipe and weights. */
export const isSavedHere = ({ resume, out }: Pick<TrainArguments, "resume" | "out">): boolean =>
  resume === "auto" && savesIn(resolve(out!)).length > 0;

/**
 * The recipe that the command line names: that of a run to resume, a file, or the default one. With `--resume auto`
 * that of a new run. Throws `OptionsError`.
 */
export function recipeFor({ resume, recipe, overrides, newHead }: RecipeArguments, weights?: InitialWeights): Recipe {
  if (resume === undefined || resume === "auto") {
    const read = readRecipe(recipe ?? defaultRecipe, overrides, (file) =>
      weights
        ? recipeOfWeights(weights, { file, commandLine: applyOverrides({}, overrides), newHead: newHead === true })
        : {},
    );
    if (read.trainedWeights && !weights)
      throw new OptionsError([
        "trainedWeights: the recipe's rates are for weights that are trained, and random ones would hardly learn; name them with --init-from FOLDER, or take another recipe",
      ]);
    return read;
  }
  const { run } = locateRun(resume);
  return resumedRecipe(readSave(resume).manifest, readRecipeText(run), overrides, run).recipe;
}
