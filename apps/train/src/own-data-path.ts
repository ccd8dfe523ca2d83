import { OptionsError } from "@terse/options";
import type { Recipe } from "./recipe.ts";

/** The environment variable with the path that the data has on this machine, where it is not the recipe's. */
export const ownDataPath = "TERSE_DATA_PATH";

/** What to do where machines have the data at different paths. */
export const ownDataPathRemedy = `Where a machine has the data at another path, give every machine the same data.path, and on that machine set the environment variable ${ownDataPath} to its own.`;

/**
 * The recipe with this machine's own data path. Ranks compare and saves keep the recipe without it. Throws
 * `OptionsError`.
 */
export function withOwnDataPath(recipe: Recipe): Recipe {
  const path = process.env[ownDataPath];
  if (path === undefined || path === "") return recipe;
  if ((recipe.data as { path?: string }).path === undefined)
    throw new OptionsError([
      `${ownDataPath} is ${path}, and stands for data.path, which this recipe does not have; set data.path, or unset ${ownDataPath}`,
    ]);
  return { ...recipe, data: { ...recipe.data, path } as Recipe["data"] };
}
