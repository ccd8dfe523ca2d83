import { join } from "node:path";
import type { Group } from "@terse/collectives";
import { headOf, type Model } from "@terse/models";
import { type Base, type BaseFolder, recordBase } from "../adapter/base.ts";
import { checkNewHead } from "../adapter/check-new-head.ts";
import type { Parts } from "../parts.ts";
import type { Recipe } from "../recipe.ts";
import { initialFiles, keepInitialFiles, keepTokenizer } from "./initial-files.ts";
import { loadAdapterOn, loadBaseOn, loadInitialOn } from "./load-on.ts";
import { checkClassNames, meaningsIn } from "./meanings.ts";
import { checkHead, isModelFolder, modelFolderOf } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { remarksAtStart } from "./remarks-at-start.ts";
import { Run } from "./run.ts";
import type { RunArguments } from "./run-arguments.ts";
import { enterNewFolder } from "./run-folder.ts";
import { locateRun } from "./save-folder.ts";

/** A run that begins with its first step, from random weights or from those of `--init-from`. */
export async function newRun(recipe: Recipe, args: RunArguments, group: Group): Promise<Run> {
  const place = await enterNewFolder(recipe, args, group);
  const { initFrom, newHead, weights } = args;
  const notes = remarksAtStart(recipe, args);
  const { tokenizer } = recipe.data as { tokenizer?: string };
  const keepOnEveryDisk = async () => {
    if (place.lock.keeper === group.rank) notes.push(...(await keepTokenizer(tokenizer, place.run)));
  };
  if (initFrom === undefined) {
    if (recipe.adapter)
      notes.push(
        "adapter: the weights that it leaves as they are are random; name trained ones with --init-from FOLDER",
      );
    const restore = async () => {
      await keepOnEveryDisk();
      return recipe.adapter ? { base: { seed: recipe.seed } } : {};
    };
    return new Run(place, group, { notes, restore });
  }
  const recorded = async (base: string): Promise<BaseFolder> =>
    (await onEveryRank(group, () => (group.rank === 0 ? recordBase(base) : null)))[0]!;
  const loadInitial = async (from: string, model: Model): Promise<Base | undefined> => {
    if (weights?.adapter) {
      const base = await loadBaseOn(0, async () => weights.adapter!, model, group, args.base);
      await loadAdapterOn(0, from, model, group);
      return "folder" in base && base.files === undefined ? recorded(base.folder) : base;
    }
    await onEveryRank(group, async () => {
      if (group.rank > 0) return;
      if (newHead) checkNewHead(model);
      else await checkHead(from, model);
    });
    const base = recipe.adapter && (await recorded(from));
    await loadInitialOn(0, base ?? { folder: from }, model, group, { newHead });
    return base;
  };
  const restore = async ({ model, data }: Parts) => {
    if (!newHead) checkClassNames(weights?.config ?? {}, data, ", or train another head, --new-head");
    const from = await onEveryRank(group, () => (group.rank === 0 ? modelFolderOf(initFrom) : ""));
    const base = await loadInitial(from[0]!, model);
    if (newHead) notes.push(`new, with random values: ${headOf(model)}`);
    await keepOnEveryDisk();
    const isTokenizer = tokenizer === weights?.tokenizer;
    const ofRun = isModelFolder(initFrom) ? [] : [join(locateRun(initFrom).run, initialFiles)]; // what it has kept itself
    if (group.rank === 0)
      for (const beside of new Set([base && "folder" in base ? base.folder : from[0]!, from[0]!, ...ofRun])) // the adapter's own last
        notes.push(...(await keepInitialFiles(beside, place.run, { tokenizer: isTokenizer })));
    return { base, meanings: meaningsIn(weights?.config ?? {}, { classes: !newHead, tokens: isTokenizer }) };
  };
  return new Run(place, group, { notes, restore });
}
