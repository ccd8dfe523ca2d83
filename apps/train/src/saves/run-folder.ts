/** The folder of a run: made for a new one, and taken by one start of it on every rank's disk. */
import { randomBytes } from "node:crypto";
import { readdirSync, rmdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { CheckpointError, makeFolder, mayExist } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { print } from "@terse/options";
import { defaultRecipe, type Recipe } from "../recipe.ts";
import { isTraceFile } from "../trace/write-trace.ts";
import { lockFile, lockFolder } from "./folder-lock.ts";
import { initialFiles } from "./initial-files.ts";
import { newFolder } from "./new-folder.ts";
import { onEveryRank } from "./on-every-rank.ts";
import type { RunArguments } from "./run-arguments.ts";
import { partOfSaves, recipeFile, type SaveManifest, saveFoldersIn, stepOfName } from "./save-folder.ts";
import type { Place } from "./write-save.ts";

/** What a run has written before its first save. */
const isBeforeFirstSave = (name: string) =>
  isTraceFile(name) ||
  name === initialFiles ||
  /^(recipe\.json|metrics\.jsonl|tensorboard|track\.json|(wandb|mlflow)\.log|wandb|\..*\.tmp)$/.test(name);

/** Makes a new folder for this run. */
function claimFolder(args: RunArguments): string {
  if (args.out === undefined) return newFolder("", args.recipe ?? defaultRecipe.pathname);
  const folder = resolve(args.out);
  makeFolder(folder);
  checkEmpty(folder, args);
  return folder;
}

function checkEmpty(folder: string, args: RunArguments): void {
  const found = foundIn(folder, args);
  if (found.length === 0) return;
  const isUnsaved = found.includes(recipeFile) && foundIn(folder, { ...args, resume: "auto" }).length === 0;
  const other = isUnsaved
    ? ", or begin the run in it anew with --resume auto: it has no save yet"
    : saveFoldersIn(folder).length > 0
      ? ", or continue the run in it with --resume"
      : "";
  throw new CheckpointError(`${folder} is not empty, and a run needs its own folder: choose another --out${other}`);
}

/**
 * The same on the disk of another machine than rank 0's. `hasBegun`: the run has been started before, as rank 0's disk
 * shows. Then it may have ended when the first save had its name here, and not yet on rank 0's disk.
 */
function checkEmptyToo(folder: string, args: RunArguments, hasBegun: boolean): void {
  const found = foundIn(folder, args).filter((name) => !(hasBegun && stepOfName(name) !== undefined));
  if (found.length === 0) return;
  const part = args.resume === "auto" ? partOfSaves(folder) : undefined;
  throw new CheckpointError(
    part === undefined
      ? `${folder} is not empty, and a run needs its own folder on every machine: choose another --out, or remove that one`
      : `${part}; for a new run choose another --out, or remove that folder`,
  );
}

/** What is in a folder, and not of this run. */
function foundIn(folder: string, { resume, logDir }: RunArguments): string[] {
  const mayBeThere = (name: string) =>
    name.startsWith(lockFile) ||
    (resume === "auto" && isBeforeFirstSave(name)) ||
    (logDir !== undefined && join(folder, name) === resolve(logDir));
  return readdirSync(folder).filter((name) => !mayBeThere(name));
}

/**
 * A new folder for this run, entered. It must be empty on every machine's disk, because a run removes what saves of
 * others it finds there. Rank 0's is looked at again once it is locked: another start may have used it while this one
 * waited for its lock.
 */
export async function enterNewFolder(recipe: Recipe, args: RunArguments, group: Group): Promise<Place> {
  const [folder] = (await onEveryRank(group, () => (group.rank === 0 ? claimFolder(args) : ""))) as [string];
  const place = await enterFolder(folder, recipe, group);
  try {
    const [hasBegun] = await onEveryRank(group, () => mayExist(join(folder, recipeFile)));
    await onEveryRank(group, () => {
      if (group.rank === 0) checkEmpty(folder, args);
      else if (place.lock.keeper === group.rank) checkEmptyToo(folder, args, hasBegun!);
    });
  } catch (error) {
    leaveFolder(place);
    throw error;
  }
  return place;
}

/** The folder on every rank's disk, with a lock, for a run that goes on from `save`. Rank 0 keeps its own. */
export async function enterFolder(
  run: string,
  recipe: Recipe,
  group: Group,
  save: Pick<SaveManifest, "step" | "bestSave" | "validated"> = { step: 0 },
): Promise<Place> {
  const [start] = (await onEveryRank(group, () => randomBytes(8).toString("hex"))) as [string, ...string[]];
  const take = async () => {
    makeFolder(run);
    return lockFolder(run, { start, rank: group.rank }, (why) => print(why, process.stderr));
  };
  let lock = group.rank === 0 ? take() : undefined;
  await onEveryRank(group, async () => void (await lock));
  lock ??= take();
  await onEveryRank(group, async () => void (await lock));
  const saves = new Set(saveFoldersIn(run).filter((each) => each <= save.step));
  return { run, recipe, lock: await lock, saves, best: save.bestSave ?? save.validated?.best };
}

/** Other runs may use the folder. One in which nothing has been written is removed. */
export function leaveFolder({ run, lock }: Place): void {
  lock[Symbol.dispose]();
  try {
    rmdirSync(run);
  } catch {
    // it is not empty
  }
}

/** What a user should know where the lock cannot be written, and where it can be again. */
export function unwrittenText(run: string, why: string | undefined): string {
  const path = join(run, lockFile);
  return why === undefined
    ? `${path} is written again`
    : `${path} cannot be written: ${why}; the run goes on and tries again. If that lasts, a start elsewhere takes this run for ended.`;
}
