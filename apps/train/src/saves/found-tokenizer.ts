import type { Group } from "@terse/collectives";
import { foundTokenizer } from "../adapter/base.ts";
import type { Recipe } from "../recipe.ts";
import { folderOfModel, modelFolderOf, saveOfModel } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";
import type { Run } from "./run.ts";
import { saveFolder } from "./save-folder.ts";

interface Options {
  readonly resume?: string | undefined;
  readonly base?: string | undefined;
}

/**
 * The run's recipe with a tokenizer that is there, where the run's own is not any more: that of the base of its adapter,
 * which has moved to `base`, or the one that the run has kept on this disk. Saves keep the recipe as it was. Rank 0 has
 * the save that the run goes on from.
 */
export async function withFoundTokenizer(
  recipe: Recipe,
  { folder, step }: Pick<Run, "folder" | "step">,
  { resume, base }: Options,
  group: Group,
): Promise<Recipe> {
  const { tokenizer } = recipe.data as { tokenizer?: string };
  if (resume === undefined || step === 0 || tokenizer === undefined) return recipe;
  const save = base === undefined || resume === "auto" ? saveFolder(folder, step) : resume;
  const find = () => foundTokenizer(base === undefined ? save : folderOfModel(save), tokenizer, base);
  const found = base === undefined ? find() : (await onEveryRank(group, () => (group.rank === 0 ? find() : "")))[0]!;
  return { ...recipe, data: { ...recipe.data, tokenizer: found } as Recipe["data"] };
}

/** The data that a run has trained on, with a tokenizer that is there, as in `withFoundTokenizer`. */
export async function foundDataOf(run: string, base: string | undefined): Promise<Recipe["data"]> {
  const { data } = saveOfModel(run).manifest.recipe;
  const { tokenizer } = data as { tokenizer?: string };
  if (tokenizer === undefined) return data;
  return { ...data, tokenizer: foundTokenizer(await modelFolderOf(run), tokenizer, base) } as Recipe["data"];
}
