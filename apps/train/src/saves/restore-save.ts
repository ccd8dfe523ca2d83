/** Sets model, optimizer and data from a save, whose files have been checked. */
import { join } from "node:path";
import { CheckpointError, type FileRecord, loadConfig, openSafetensors } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { loraOf } from "@terse/models";
import {
  asOfOneHost,
  isOfPendingRound,
  LocalSteps,
  SavedStateError,
  type StoredState,
  type TrainingOptimizer,
} from "@terse/optimizers";
import { fromTypedArray, scope, setRandomState, type TypedArray } from "@terse/tensor";
import { describedAdapter } from "../adapter/adapter-folder.ts";
import type { Parts } from "../parts.ts";
import { statesOf } from "./find-save.ts";
import { loadAdapterOn, loadBaseOn, loadWeightsOn } from "./load-on.ts";
import { meaningsIn } from "./meanings.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { averageFolder, hasAverage, type SaveManifest, saveFolder } from "./save-folder.ts";
import type { Restored } from "./write-save.ts";

/**
 * `reader` is the rank on whose disk the weights are. `isCarried`: the state goes to other ranks, or to ranks that step
 * together in another way, and each rank reads the states of all.
 */
export async function restoreSave(
  run: string,
  manifest: SaveManifest,
  { model, data, optimizer, average }: Parts,
  {
    reader,
    group,
    base: moved,
    isCarried = manifest.ranks !== group.size,
  }: { reader: number; group: Group; base?: string | undefined; isCarried?: boolean },
): Promise<Restored> {
  const folder = saveFolder(run, manifest.step);
  const base = loraOf(model) && (await loadBaseOn(reader, () => describedAdapter(folder, moved), model, group, moved));
  const loadSaved = (folder: string) =>
    base ? loadAdapterOn(reader, folder, model, group) : loadWeightsOn(reader, folder, model, group);
  await loadSaved(folder);
  if (average && hasAverage(manifest)) await average.restore(() => loadSaved(join(folder, averageFolder)));
  const saves = Array.from({ length: manifest.ranks }, (): StoredState => ({ tensors: new Map(), scalars: {} }));
  const sameRanks = manifest.ranks === group.size;
  const files = statesOf(group.rank, manifest, isCarried);
  let random: string | undefined; // as this rank had it; other ranks than those of the save begin anew
  for (const name of files) {
    const record = manifest.files.find((file) => file.name === name)!;
    const read = await readState(join(folder, name));
    saves[record.rank] = read.state;
    if (sameRanks && record.rank === group.rank) random = read.random;
    // With other hosts a rank may have another state; `restore` says so.
    const isMoved = optimizer instanceof LocalSteps && !optimizer.isPlaceOf(read.state);
    if (!isCarried && !isMoved) await checkFits(optimizer, record, folder);
  }
  try {
    const endsLocal = Boolean(manifest.recipe.local) && !(optimizer instanceof LocalSteps);
    const stored = endsLocal ? asOfOneHost(saves) : saves;
    await scope(() => optimizer.restore(manifest.step, stored, { compressesAnew: endsLocal }));
  } catch (error) {
    if (!(error instanceof SavedStateError)) throw error;
    throw new CheckpointError(
      `Cannot resume from ${files.map((name) => join(folder, name)).join(", ")}: ${error.message}`,
    );
  }
  data.restore(manifest.data);
  if (random !== undefined) {
    using state = fromTypedArray(new Uint8Array(Buffer.from(random, "base64")));
    setRandomState(state);
  }
  const configs = await onEveryRank(group, () => (group.rank === reader ? loadConfig(folder) : {}));
  return { base, meanings: meaningsIn(configs[reader]!, { classes: true, tokens: true }) };
}

async function readState(path: string): Promise<{ state: StoredState; random: string | undefined }> {
  await using file = await openSafetensors(path);
  const tensors = new Map<string, TypedArray>();
  for (const name of file.tensors.keys()) tensors.set(name, (await file.read(name)).data);
  const scalars = JSON.parse(file.metadata["scalars"] ?? "{}") as StoredState["scalars"];
  return { state: { tensors, scalars }, random: file.metadata["random"] };
}

/** Names, dtypes and shapes of a rank's own state, but for a round under way: `restore` compares names and lengths. */
async function checkFits(
  optimizer: TrainingOptimizer,
  { name, tensors = {} }: FileRecord,
  folder: string,
): Promise<void> {
  await scope(async () => {
    const wanted = (await optimizer.state()).tensors;
    const words = (tensor?: { dtype: string; shape: readonly number[] }) =>
      tensor ? `${tensor.dtype} (${tensor.shape.join(", ")})` : "absent";
    const names = new Set([...wanted.keys(), ...Object.keys(tensors).filter((each) => !isOfPendingRound(each))]);
    for (const each of names)
      if (words(tensors[each]) !== words(wanted.get(each)))
        throw new CheckpointError(
          `Cannot resume from ${join(folder, name)}: ${each} is ${words(tensors[each])} there and ${words(wanted.get(each))} in this optimizer; resume with the recipe of the save`,
        );
  });
}
