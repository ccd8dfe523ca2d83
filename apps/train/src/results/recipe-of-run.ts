import { join } from "node:path";
import { CheckpointError } from "@terse/checkpoint";
import { OptionsError } from "@terse/options";
import type { Recipe } from "../recipe.ts";
import { writtenRecipe } from "../resumed-recipe.ts";
import { namedBy, namedInstead, readRecipeText, recipeFile } from "../saves/save-folder.ts";

/** The recipe of a run. CheckpointError where the run has none, or one with keys of another version. */
export function recipeOfRun(run: string): Recipe {
  const text = readRecipeText(run);
  if (text === undefined) {
    const { run: whole, save, isAverage } = namedBy(run);
    const isPart = (save !== undefined || isAverage) && readRecipeText(whole) !== undefined;
    throw new CheckpointError(
      (isPart ? `${run} is a part of a run: name the run, ${whole}` : namedInstead(run)) ??
        `${run || '""'} has no ${recipeFile}: name the folder of a run, such as runs/NAME-TIME`,
    );
  }
  try {
    return writtenRecipe(text, join(run, recipeFile));
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    // Without a picture of the place.
    const lines = error.lines.map((problem) => problem.split("\n")[0]!.replace(/:$/, ""));
    throw new CheckpointError(`${lines.join("; ")}. Restore it, or name another run.`, { cause: error });
  }
}
