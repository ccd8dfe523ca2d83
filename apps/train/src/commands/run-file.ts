import { existsSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError } from "@terse/checkpoint";
import { OptionsError } from "@terse/options";
import { type Recipe, readRecipe } from "../recipe.ts";

/** The path of a file in a run's folder. CheckpointError where it is not there. */
export function runFile(run: string, name: string): string {
  const file = join(run, name);
  if (!existsSync(file))
    throw new CheckpointError(`${run} has no ${name}: name the folder of a run, such as runs/NAME-TIME`);
  return file;
}

/** The recipe of a run. CheckpointError where the run has none, or one with keys of another version. */
export function recipeOfRun(run: string): Recipe {
  const file = runFile(run, "recipe.json");
  try {
    return readRecipe(file, []);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(`${file} was written by another version of terse, or changed: ${error.message}`, {
      cause: error,
    });
  }
}
