/** Finds the save from which a run resumes, brings it to the ranks that lack it, and checks what each rank reads. */
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  adapterFile,
  atomicWrite,
  CheckpointError,
  checkFile,
  makeFolder,
  manifestFile,
  mayExist,
  openRegular,
  readManifestText,
  weightsFile,
  writeAll,
} from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { FolderLock } from "./folder-lock.ts";
import { onEveryRank } from "./on-every-rank.ts";
import {
  bestStep,
  isStateFile,
  type Named,
  namedBy,
  noSave,
  parseSave,
  partOfSaves,
  readRecipeText,
  type SavedFile,
  type SaveManifest,
  saveFolder,
  savesIn,
  stateFile,
} from "./save-folder.ts";

export interface FoundSave {
  readonly run: string; // folder
  readonly manifest: SaveManifest;
  /** The text of recipe.json, which may be newer than the save; undefined where there is none. */
  readonly recipeText: string | undefined;
}

/** A save that cannot be gone on from: a file of it is damaged, or no rank has it. */
export class DamagedSave extends CheckpointError {}

/**
 * The folder that `--out` names, on all machines that of rank 0, also where they were started in different folders: a
 * new run writes there.
 */
export async function folderOf(out: string, group: Group): Promise<string> {
  return (await onEveryRank(group, () => resolve(out)))[0]!;
}

/** The steps of the saves of a run on any rank's disk, the newest first. */
export async function savedSteps(run: string, group: Group): Promise<number[]> {
  const steps = (await onEveryRank(group, () => savesIn(run))).flat();
  return [...new Set(steps)].sort((a, b) => b - a);
}

/** A run's own folder may be named best or average, and be on some disks alone. */
async function namedOnAnyRank(path: string, group: Group): Promise<Named> {
  const isPlain = ({ save, isAverage }: Named) => save !== "best" && !isAverage;
  const [mine, all] = [namedBy(path), await onEveryRank(group, () => namedBy(path))];
  return isPlain(mine) || !all.some(isPlain) ? mine : { run: resolve(path), save: undefined, isAverage: false };
}

/**
 * The save that `path` names, on any rank's disk. Throws `CheckpointError` on all ranks alike.
 */
export async function findSave(path: string, group: Group): Promise<FoundSave> {
  const { run, save, isAverage } = await namedOnAnyRank(path, group);
  if (isAverage)
    throw new CheckpointError(`${path} is an average of weights, and a run goes on from a whole save: name ${run}`);
  const held = await onEveryRank(group, () => savesIn(run));
  const newest = Math.max(-1, ...held.flat());
  const read = async (step: number) => {
    const from = held.findIndex((steps) => steps.includes(step)); // rank 0, unless its disk has no such save
    if (from < 0) {
      await onEveryRank(group, () => {
        const part = partOfSaves(run);
        if (part !== undefined) throw new CheckpointError(part);
      });
      throw noSave(path);
    }
    const texts = await onEveryRank(group, () =>
      group.rank === from ? [readManifestText(saveFolder(run, step))!, readRecipeText(run) ?? null] : null,
    );
    const [manifestText, recipeText] = texts[from] as [string, string | null];
    const manifest = parseSave(manifestText, join(saveFolder(run, step), manifestFile));
    return { run, manifest, recipeText: recipeText ?? undefined };
  };
  if (save !== "best") return read(save ?? newest);
  return read(bestStep(run, (await read(newest)).manifest, held.flat()));
}

/**
 * Brings the files that a rank needs from another machine's disk to its own, and checks every file that will be read.
 * Resolves to the rank that reads the weights. Throws `CheckpointError` on all ranks alike.
 */
export async function gatherSave(
  run: string,
  manifest: SaveManifest,
  lock: FolderLock,
  group: Group,
  isCarried: boolean = manifest.ranks !== group.size,
): Promise<number> {
  const folder = saveFolder(run, manifest.step);
  const { diskOf, disksWith } = await filesOnDisks(folder, manifest, lock, group);
  const disksThatNeed = ({ name }: SavedFile) =>
    diskOf.filter((_, rank) => statesOf(rank, manifest, isCarried).includes(name));
  const weights = manifest.files.find(({ name }) => name === weightsFile || name === adapterFile);
  if (!weights)
    throw new CheckpointError(`${join(folder, manifestFile)} lists no ${weightsFile}; use an earlier save.`);
  const states = manifest.files.filter((file) => disksThatNeed(file).length > 0);
  const missing = [weights, ...states].filter((file) => disksWith(file).length === 0);
  if (missing.length > 0)
    throw new CheckpointError(
      `${missing.map(({ name, rank, host }) => `${join(folder, name)}, which rank ${rank} wrote on ${host}`).join(", and ")}: no rank's disk has it. Start a rank on that machine, or copy the file.`,
    );

  for (const file of states) {
    const having = disksWith(file);
    const lacking = disksThatNeed(file).filter((disk) => !having.includes(disk));
    const receives = lacking.includes(group.rank);
    if (lacking.length > 0)
      await onEveryRank(group, async () => {
        await carry(file, folder, { from: having[0]!, receives }, group);
        if (receives) await checkFile(folder, file).catch((error: unknown) => discard(join(folder, file.name), error));
      });
  }

  const reader = disksWith(weights)[0]!;
  await onEveryRank(group, async () => {
    // With another number of ranks each reads all states: one rank of a disk checks them for the others.
    const checksStates = manifest.ranks === group.size || lock.keeper === group.rank;
    const mine = checksStates ? statesOf(group.rank, manifest, isCarried) : [];
    for (const file of manifest.files)
      if (isStateFile(file.name) ? mine.includes(file.name) : group.rank === reader)
        await checkFile(folder, file, manifest.files);
  });
  return reader;
}

/** The disk of each rank, and the disks with a file. A disk goes by the rank that keeps the run's folder there. */
async function filesOnDisks(folder: string, { files }: SaveManifest, { keeper }: FolderLock, group: Group) {
  const names = files.map(({ name }) => name);
  const disks = await onEveryRank(group, () => ({
    keeper,
    has: keeper === group.rank ? names.filter((name) => mayExist(join(folder, name))) : [],
  }));
  return {
    diskOf: disks.map(({ keeper }) => keeper),
    disksWith: ({ name }: SavedFile) => disks.flatMap(({ has }, rank) => (has.includes(name) ? [rank] : [])),
  };
}

/** The files of state that a rank reads: its own, or those of all ranks where the state is carried to others. */
export function statesOf(rank: number, { ranks }: SaveManifest, isCarried: boolean): string[] {
  return isCarried ? Array.from({ length: ranks }, (_, each) => stateFile(each)) : [stateFile(rank)];
}

function discard(path: string, error: unknown): never {
  rmSync(path);
  throw error;
}

const chunkBytes = 1 << 22;

/**
 * Copies a file from one rank's disk to those of the ranks that receive it. All ranks call it, and finish it after an
 * error too.
 */
async function carry(
  { name, bytes }: SavedFile,
  folder: string,
  { from, receives }: { from: number; receives: boolean },
  group: Group,
): Promise<void> {
  const path = join(folder, name);
  let begun = false;
  const transfer = async (use: (chunk: Uint8Array, at: number) => Promise<void>) => {
    begun = true;
    let failure: unknown;
    for (let at = 0; at < bytes; at += chunkBytes) {
      const chunk = new Uint8Array(Math.min(chunkBytes, bytes - at));
      const attempt = async () => {
        if (failure === undefined) await use(chunk, at).catch((error: unknown) => (failure = error));
      };
      if (group.rank === from) await attempt();
      await group.broadcast(chunk, from);
      if (receives) await attempt();
    }
    if (failure !== undefined) throw failure;
  };
  try {
    if (group.rank === from) {
      await using file = await openRegular(path);
      await transfer(async (chunk, at) => void (await file.read(chunk, 0, chunk.length, at)));
    } else if (receives) {
      makeFolder(folder);
      await atomicWrite(path, (file) => transfer((chunk) => writeAll(file, chunk)));
    } else await transfer(async () => {});
  } catch (error) {
    if (!begun) await transfer(async () => {}); // the other ranks count on this one
    throw error;
  }
}
