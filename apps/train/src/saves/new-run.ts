import type { Group } from "@terse/collectives";
import { headOf, withNewHead } from "@terse/models";
import type { Parts } from "../parts.ts";
import { defaultRecipe, droppedOptions, type Recipe, remarksOn } from "../recipe.ts";
import { keepInitialFiles } from "./initial-files.ts";
import { remarksOnWeights } from "./initial-weights.ts";
import { meaningsIn } from "./meanings.ts";
import { checkHead, modelFolderOf } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { loadWeightsOn } from "./restore-save.ts";
import { Run } from "./run.ts";
import type { RunArguments } from "./run-arguments.ts";
import { claimFolder, enterFolder } from "./run-folder.ts";

/** A run that begins with its first step, from random weights or from those of `--init-from`. */
export async function newRun(recipe: Recipe, args: RunArguments, group: Group): Promise<Run> {
  const [folder] = (await onEveryRank(group, () => (group.rank === 0 ? claimFolder(args) : ""))) as [string];
  const place = await enterFolder(folder, recipe, group);
  const { initFrom, newHead, weights } = args;
  const notes = [...droppedOptions(args.recipe ?? defaultRecipe, args.overrides), ...remarksOn(recipe)];
  if (initFrom === undefined) return new Run(place, group, { notes });
  const restore = async ({ model }: Parts) => {
    const from = await onEveryRank(group, () => (group.rank === 0 ? modelFolderOf(initFrom) : ""));
    await onEveryRank(group, async () => {
      if (group.rank > 0) return;
      if (!newHead) await checkHead(from[0]!, model);
    });
    await loadWeightsOn(0, from[0]!, model, group, newHead ? withNewHead(model) : model);
    if (newHead) notes.push(`new, with random values: ${headOf(model)}`);
    const isTokenizer = (recipe.data as { tokenizer?: string }).tokenizer === weights?.tokenizer;
    if (group.rank === 0) notes.push(...keepInitialFiles(from[0]!, folder, { tokenizer: isTokenizer }));
    return meaningsIn(weights?.config ?? {}, { classes: !newHead, tokens: isTokenizer });
  };
  notes.push(`the weights are those of ${initFrom}`);
  if (weights) notes.push(...remarksOnWeights(weights, recipe, isOfRecipeHere(args) ? "of a recipe here" : "given"));
  return new Run(place, group, { notes, restore });
}

/** Whether the learning rate is that of a recipe in apps/train/recipes. */
const isOfRecipeHere = ({ recipe, overrides }: RunArguments) =>
  (recipe === undefined || /^[\w-]+$/.test(recipe)) && !overrides.some((each) => /^(--)?optimizer(\.lr)?=/.test(each));
