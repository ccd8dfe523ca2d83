/** Writes a save: all ranks together, completely or not at all. */
import { CheckpointError, type Config, renameFolder, type StoredTensor, writeManifest } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { DatasetState } from "@terse/data";
import { type Lora, loraOf, type Model, peftConfigOf } from "@terse/models";
import { refusalIn, roundsIn } from "@terse/optimizers";
import { randomState, scope, type Tensor, type TypedArray } from "@terse/tensor";
import type { Base } from "../adapter/base.ts";
import type { Validated } from "../best-so-far.ts";
import type { Parts } from "../parts.ts";
import type { Recipe } from "../recipe.ts";
import type { FolderLock } from "./folder-lock.ts";
import { withMeanings } from "./meanings.ts";
import type { Sums } from "./metrics.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { type NamedTensor, NotFiniteError, type SavedModel, type SaveFiles } from "./save-files.ts";
import {
  type BestSave,
  remove,
  removeOldSaves,
  type SavedFile,
  type SaveManifest,
  saveFolder,
  unfinishedFolder,
} from "./save-folder.ts";
import type { Writer } from "./thread-writer.ts";

/** Parts of a run that is saved, and what its config.json says besides. */
export interface SavedParts extends Parts, Restored {}

/** What a run keeps of where its model came from. */
export interface Restored {
  readonly meanings?: Config;
  /** Of an adapter, whose saves name it. */
  readonly base?: Base | undefined;
}

export interface Place {
  readonly run: string; // folder
  readonly recipe: Recipe;
  readonly lock: FolderLock;
  /** The steps of the run's saves, without those that it did not go on from. */
  readonly saves: Set<number>;
  best: BestSave | undefined;
}

/** A rank's copy of the run after `step` steps. */
export interface StateCopy {
  readonly step: number;
  readonly data: DatasetState;
  readonly validated?: Validated | undefined;
  readonly sums?: Sums | undefined; // on rank 0, where there are any
  readonly rounds?: readonly number[] | undefined; // of local steps
  readonly refused?: string | undefined; // why this rank has refused a step since the last round of local steps
  readonly files: SaveFiles;
}

/** Copies what this rank saves to the host's memory, into that of `spare` where it fits. Sends nothing. */
export function copyState(
  step: number,
  recipe: Recipe,
  { model, data, optimizer, average, meanings = {}, base }: SavedParts,
  rank: number,
  spare?: SaveFiles,
): Promise<StateCopy> {
  return scope(async () => {
    const { tensors, scalars } = await optimizer.state();
    const random = (await randomState().toTypedArray()) as Uint8Array; // of dropout, on a CPU
    const metadata = { scalars: JSON.stringify(scalars), random: Buffer.from(random).toString("base64") };
    const state = await copiesOf(tensors, spare?.state);
    const files: SaveFiles = { rank, state, metadata };
    const known = { step, data: data.state(), rounds: roundsIn({ scalars }), refused: refusalIn({ scalars }) };
    if (rank > 0) return { ...known, files };
    const config = withMeanings({ model_type: recipe.model.name, ...model.config }, meanings, data.classNames);
    const lora = loraOf(model);
    const kept = lora?.parameters() ?? model.stateDict();
    const weights = await optimizer.shared(() => copiesOf(kept, spare?.model?.tensors));
    const names = lora && base ? { adapter: savedAdapter(model, lora, base) } : { storedAs: storedAs(model, weights) };
    const saved = (tensors: NamedTensor[]) => ({ tensors, config, ...names });
    const averaged = average?.hasBegun
      ? await average.during(() => copiesOf(kept, spare?.average?.tensors))
      : undefined;
    const both = { model: saved(weights), average: averaged && saved(averaged) };
    return { ...known, files: { ...files, ...both } };
  });
}

const storedAs = (model: Model, weights: readonly NamedTensor[]): SavedModel["storedAs"] =>
  model.storedAs && Object.fromEntries(weights.map(([name]) => [name, model.storedAs!(name)]));

const savedAdapter = (model: Model, lora: Lora, base: Base): SavedModel["adapter"] => ({
  adapterConfig: peftConfigOf(model, lora, { base: "folder" in base ? base.folder : undefined }),
  metadata: { base: JSON.stringify(base) },
});

async function copiesOf(
  tensors: Iterable<readonly [name: string, tensor: Tensor]>,
  spare: readonly NamedTensor[] = [],
): Promise<NamedTensor[]> {
  const copies: NamedTensor[] = [];
  for (const [name, tensor] of tensors) {
    const { dtype, shape, length } = tensor;
    const [, old] = spare[copies.length] ?? [];
    const fits = old?.dtype === dtype && old.data.length === length;
    const data = await tensor.toTypedArray(fits ? (old.data as TypedArray) : undefined);
    copies.push([name, { dtype, shape: [...shape], data } as StoredTensor]);
  }
  return copies;
}

/**
 * Every rank writes its own state, rank 0 also the model and the manifest. The save gets its name when all ranks have
 * written their files, on rank 0's disk last; then older saves are removed. Where a rank fails, nothing remains, and
 * all ranks throw the same `CheckpointError`. Where the group fails, the save is complete on all disks, or is none.
 */
export async function writeCopy(
  { step, data, rounds, validated, sums, refused, files: copied }: StateCopy,
  place: Place,
  group: Group,
  writer: Writer,
): Promise<void> {
  const { run, recipe, lock, saves } = place;
  const best = withSave(place.best, step, validated);
  const folder = unfinishedFolder(run, step);
  const isKeeper = lock.keeper === group.rank;
  const named = saveFolder(run, step);
  let isNamed = false; // before rank 0's part, without which it is no save
  try {
    const reason = refused && `rank ${group.rank} has refused a step: ${refused}`;
    const written = await onEveryRank(group, async () => reason ?? (await recordsOrReason(writer, folder, copied)));
    const reasons = written.flatMap((files) => (typeof files === "string" ? [files] : []));
    if (reasons.length > 0) throw new NotFiniteError(`${reasons.join("; ")}, and the saves before stay`);
    const files = written.flatMap((each) => (typeof each === "string" ? [] : each));
    const known = { ...(validated && { validated }), ...(best && { bestSave: best }), ...(sums && { sums }) };
    const begins = { step, ...(rounds && { rounds }), ranks: group.size, recipe, data };
    const manifest: SaveManifest = { ...begins, ...known, files };
    await onEveryRank(group, async () => {
      if (isKeeper) lock.check();
      if (group.rank === 0) await writeManifest(folder, manifest);
      else if (isKeeper) {
        await renameFolder(folder, named);
        isNamed = true;
      }
    });
    await onEveryRank(group, async () => {
      if (group.rank === 0) await renameFolder(folder, named);
    });
  } catch (error) {
    if (isKeeper) remove(folder);
    // Rank 0's part of it does not exist. After a failure of the group that is not known: it may be complete.
    if (isNamed && error instanceof CheckpointError) remove(named);
    await group.barrier(); // nobody begins the next save before this one is gone
    throw error;
  }
  saves.add(step);
  place.best = best;
  if (isKeeper) await removeOldSaves(run, saves, recipe.save.keep, recipe.save.best ? best?.step : undefined);
}

/** The best save, with one after `step` steps, where that has been evaluated. */
function withSave(best: BestSave | undefined, step: number, validated: Validated | undefined): BestSave | undefined {
  const { at, loss } = validated ?? {};
  return at !== step || loss === undefined || (best && best.loss <= loss) ? best : { step, loss };
}

/** The records of this rank's files, or what is not finite in them. */
async function recordsOrReason(writer: Writer, folder: string, files: SaveFiles): Promise<SavedFile[] | string> {
  try {
    return await writer.write(folder, files);
  } catch (error) {
    if (error instanceof NotFiniteError) return error.message;
    throw error;
  }
}
