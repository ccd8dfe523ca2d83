import type { Group } from "@terse/collectives";
import { tokenizerWithBase } from "../adapter/base.ts";
import type { Recipe } from "../recipe.ts";
import { folderOfModel } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";
import type { Run } from "./run.ts";
import { saveFolder } from "./save-folder.ts";

interface Options {
  readonly resume?: string | undefined;
  readonly base?: string | undefined;
}

/**
 * The run's recipe with the tokenizer beside the base of its adapter, where that has moved to `base`. Saves keep the
 * recipe as it was. Rank 0 has the save that the run goes on from.
 */
export async function withTokenizerOfBase(
  recipe: Recipe,
  { folder, step }: Pick<Run, "folder" | "step">,
  { resume, base }: Options,
  group: Group,
): Promise<Recipe> {
  const { tokenizer } = recipe.data as { tokenizer?: string };
  if (base === undefined || resume === undefined || step === 0 || tokenizer === undefined) return recipe;
  const save = resume === "auto" ? saveFolder(folder, step) : resume;
  const find = () => (group.rank === 0 ? tokenizerWithBase(folderOfModel(save), tokenizer, base) : "");
  const [found] = await onEveryRank(group, find);
  return { ...recipe, data: { ...recipe.data, tokenizer: found } as Recipe["data"] };
}
