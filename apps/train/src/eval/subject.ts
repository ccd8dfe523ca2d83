/** What is evaluated, as rank 0 reads it and tells the others: a model, and the recipe of the evaluation. JSON. */

import { datasets } from "@terse/data";
import { OptionsError } from "@terse/options";
import { foundTokenizer } from "../adapter/base.ts";
import { parsedRecipe, type Recipe } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { type Tree, withOverrides } from "../recipe-tree.ts";
import { writtenRecipe } from "../resumed-recipe.ts";
import { otherTokenizerRemark, readInitialWeights } from "../saves/initial-weights.ts";
import {
  type DescribedModel,
  describedModel,
  isModelFolder,
  modelFolderOf,
  newestRun,
  saveOfModel,
} from "../saves/model-of-run.ts";
import type { EvalArguments } from "./eval-arguments.ts";

export interface Subject {
  readonly folder: string; // with the weights, on rank 0's disk
  readonly model: DescribedModel;
  readonly recipe: Recipe;
  /** The user has named data: it is not the run's. */
  readonly isGiven: boolean;
  /** Of the data of the run, when it was saved. */
  readonly fingerprint: string | undefined;
  /** What the user should know, a line each. */
  readonly remarks: readonly string[];
}

const names = (overrides: readonly string[], keys: RegExp) =>
  overrides.some((override) => keys.test(override.split("=")[0]!));

/** Throws `CheckpointError` or `OptionsError`. */
export async function readSubject({ run = newestRun(), base, overrides }: EvalArguments): Promise<Subject> {
  const isGiven = names(overrides, /^data(\.(name|path))?$/);
  const folder = await modelFolderOf(run); // checks the files
  const model = await describedModel(folder, base);
  // Of data that somebody names for an evaluation all rows count.
  const all = isGiven && !names(overrides, /^evaluate(\.windows)?$/) ? ["evaluate.windows=all"] : [];
  if (!isModelFolder(run)) {
    const { manifest } = saveOfModel(run);
    const saved = writtenRecipe(JSON.stringify(manifest.recipe), `the save of ${run}`);
    const { tokenizer } = saved.data as { tokenizer?: string };
    const found = tokenizer && foundTokenizer(folder, tokenizer, base);
    const moved = found === tokenizer ? [] : [`data.tokenizer=${JSON.stringify(found)}`];
    const { tree } = withOverrides(saved as unknown as Tree, [...moved, ...all, ...overrides]);
    const { data: fingerprint } = manifest.data as { data?: string };
    const recipe = parsedRecipe(tree);
    return { folder, model, recipe, isGiven, fingerprint, remarks: otherTokenizerRemark(recipe.data, found) };
  }
  if (!isGiven)
    throw new OptionsError([`${run} has weights and no data: name what it is to be evaluated on, --data PATH`]);
  const weights = await readInitialWeights(run, base);
  const recipe = recipeFor({ overrides: [...all, ...overrides] }, weights);
  if (
    weights.tokenizer === undefined &&
    "tokenizer" in datasets[recipe.data.name].options.entries &&
    !names(overrides, /^data(\.tokenizer)?$/)
  )
    throw new OptionsError([
      `${run} has no tokenizer, and none that is known has as many tokens; put the model's tokenizer.json there, or name it, --data.tokenizer=FILE`,
    ]);
  const remarks = otherTokenizerRemark(recipe.data, weights.tokenizer);
  return { folder, model, recipe, isGiven, fingerprint: undefined, remarks };
}

/** Whether all of the data is evaluated that no name puts into a training part, and not a share of it. */
export const holdsOutAll = ({ isGiven }: Subject, overrides: readonly string[]): boolean =>
  isGiven && !names(overrides, /^data\.(validationFraction|validation)$/);
