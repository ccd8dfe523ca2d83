import type { Group } from "@terse/collectives";
import { tokenizerWithBase } from "../adapter/base.ts";
import type { Recipe } from "../recipe.ts";
import { folderOfModel } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";

/**
 * The recipe with the tokenizer beside the base of the run's adapter, where that has moved to `base`. Saves keep the
 * recipe as it was. Rank 0 has the run's folder.
 */
export async function withTokenizerOfBase(
  recipe: Recipe,
  { resume, base }: { readonly resume?: string | undefined; readonly base?: string | undefined },
  group: Group,
): Promise<Recipe> {
  const { tokenizer } = recipe.data as { tokenizer?: string };
  if (base === undefined || resume === undefined || resume === "auto" || tokenizer === undefined) return recipe;
  const find = () => (group.rank === 0 ? tokenizerWithBase(folderOfModel(resume), tokenizer, base) : "");
  const [found] = await onEveryRank(group, find);
  return { ...recipe, data: { ...recipe.data, tokenizer: found } as Recipe["data"] };
}
