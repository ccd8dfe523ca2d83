/** Writes a save: all ranks together, completely or not at all. */
import { hostname } from "node:os";
import { join } from "node:path";
import {
  allFinite,
  CheckpointError,
  type FileRecord,
  makeFolder,
  renameFolder,
  saveModel,
  type TensorSource,
  writeManifest,
  writeSafetensors,
} from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import type { Optimizer } from "@terse/optimizers";
import { randomState, scope } from "@terse/tensor";
import type { Recipe } from "../recipe.ts";
import { together } from "./between-ranks.ts";
import type { FolderLock } from "./folder-lock.ts";
import {
  remove,
  removeOldSaves,
  type SavedFile,
  type SaveManifest,
  saveFolder,
  stateFile,
  unfinishedFolder,
} from "./save-folder.ts";

export interface Parts {
  readonly model: Model;
  readonly data: Dataset;
  readonly optimizer: Optimizer;
}

export interface Place {
  readonly run: string; // folder
  readonly recipe: Recipe;
  readonly lock: FolderLock;
  /** The steps of the run's saves, without those that it did not go on from. */
  readonly saves: Set<number>;
}

/** A value of the model or of an optimizer is NaN or infinite: such a save shall not take the place of a good one. */
export class NotFiniteError extends CheckpointError {}

/**
 * Every rank writes its own state, rank 0 also the model and the manifest. The save gets its name when all ranks have written their files,
 * on rank 0's disk last; then older saves are removed. Where a rank fails, nothing remains, and all ranks throw the same `CheckpointError`.
 */
export async function writeSave(
  step: number,
  { run, recipe, lock, saves }: Place,
  parts: Parts,
  group: Group,
): Promise<void> {
  const folder = unfinishedFolder(run, step);
  const isKeeper = lock.keeper === group.rank;
  const named = saveFolder(run, step);
  try {
    const written = await together(group, async () => {
      makeFolder(folder);
      return writeFiles(folder, recipe, parts, group.rank);
    });
    const notFinite = written.flatMap((files) => (typeof files === "string" ? [files] : []));
    if (notFinite.length > 0) throw new NotFiniteError(`${notFinite.join("; ")}, and the saves before stay`);
    const files = written.flatMap((each) => (typeof each === "string" ? [] : each));
    const manifest: SaveManifest = { step, ranks: group.size, recipe, data: parts.data.state(), files };
    await together(group, async () => {
      if (group.rank === 0) await writeManifest(folder, manifest);
      else if (isKeeper) await renameFolder(folder, named);
    });
    await together(group, async () => {
      if (group.rank === 0) await renameFolder(folder, named);
    });
  } catch (error) {
    if (isKeeper) remove(folder);
    if (isKeeper && group.rank > 0) remove(named); // rank 0's part of it does not exist
    await group.barrier(); // nobody begins the next save before this one is gone
    throw error;
  }
  saves.add(step);
  if (isKeeper) removeOldSaves(run, saves, recipe.save.keep);
}

/** The records of this rank's files, or what is not finite in them. */
async function writeFiles(folder: string, recipe: Recipe, parts: Parts, rank: number): Promise<SavedFile[] | string> {
  try {
    const files = await scope(() => writeAllFiles(folder, recipe, parts, rank));
    return files.map((file) => ({ ...file, rank, host: hostname() }));
  } catch (error) {
    if (error instanceof NotFiniteError) return error.message;
    throw error;
  }
}

async function writeAllFiles(
  folder: string,
  recipe: Recipe,
  { model, optimizer }: Parts,
  rank: number,
): Promise<FileRecord[]> {
  const { tensors, scalars } = await optimizer.state();
  const random = (await randomState().toTypedArray()) as Uint8Array; // of dropout, on a CPU
  const metadata = { scalars: JSON.stringify(scalars), random: Buffer.from(random).toString("base64") };
  const state = await writeSafetensors(
    join(folder, stateFile(rank)),
    finite(tensors, `of rank ${rank}'s state`),
    metadata,
  );
  if (rank > 0) return [state];
  const config = { model_type: recipe.model.name, ...model.config };
  return [state, ...(await saveModel(folder, finite(model.stateDict(), "of the model"), config))];
}

/** The same tensors; reading one throws where a value of it is not finite. */
function* finite(
  tensors: Iterable<readonly [name: string, tensor: TensorSource]>,
  where: string,
): Generator<readonly [string, TensorSource]> {
  for (const [name, tensor] of tensors) {
    const { dtype, shape } = tensor;
    const toTypedArray = async () => {
      const data = await tensor.toTypedArray();
      if (!allFinite(dtype, data)) throw new NotFiniteError(`${name} ${where} has values that are not finite`);
      return data;
    };
    yield [name, { dtype, shape, toTypedArray }];
  }
}
