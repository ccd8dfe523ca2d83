/** Whether the saves of a run will fit on its disks: found out before the first step, not after the last one. */
import { readdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError, elements } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { loraOf } from "@terse/models";
import { scope } from "@terse/tensor";
import { bytesText } from "../format.ts";
import type { Parts } from "../parts.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { saveFolder, saveFoldersIn } from "./save-folder.ts";
import type { Place } from "./write-save.ts";

/**
 * Throws `CheckpointError` on all ranks alike where a disk cannot hold `save.keep` saves, the best one where it is
 * kept, and the one that is being written.
 */
export async function checkSpace(
  { run, recipe, lock }: Place,
  { model, optimizer, average }: Parts,
  group: Group,
): Promise<void> {
  const mine = await scope(async () => {
    const { tensors } = await optimizer.state();
    const weights =
      group.rank === 0 ? (loraOf(model)?.parameters() ?? model.stateDict()).map(([, tensor]) => tensor) : [];
    return [...tensors.values(), ...weights, ...(average ? weights : [])].reduce(
      (sum, { length, dtype }) => sum + length * elements[dtype].bytes,
      0,
    );
  });
  const shares = await onEveryRank(group, () => ({ keeper: lock.keeper, bytes: mine }));
  await onEveryRank(group, () => {
    if (lock.keeper !== group.rank) return;
    const save = shares.filter(({ keeper }) => keeper === group.rank).reduce((sum, { bytes }) => sum + bytes, 0);
    const { keep, best } = recipe.save;
    const needed = (keep + Number(best) + 1) * save;
    const { bavail, bsize, blocks } = statfsSync(run);
    const available = bavail * bsize + bytesOfSaves(run);
    if (blocks > 0 && available < needed)
      throw new CheckpointError(
        `the disk of ${run} has ${bytesText(available)} for saves, and they will take ${bytesText(needed)} (save.keep: ${keep}, ${best ? "the best one, " : ""}and the one being written, ${bytesText(save)} each): free some, choose another --out, or keep fewer`,
      );
  });
}

/** What removing old saves will free. */
function bytesOfSaves(run: string): number {
  const folders = saveFoldersIn(run).map((step) => saveFolder(run, step));
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))),
  );
  return files.reduce((sum, file) => sum + statSync(file).size, 0);
}
