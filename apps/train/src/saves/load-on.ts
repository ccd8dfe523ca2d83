/** One rank reads weights, and all others get them from it, or read them too where they have the same files. */
import { loadModel } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { baseStateOf, loraOf, type Model, withNewHead } from "@terse/models";
import type { Tensor } from "@terse/tensor";
import { type DescribedAdapter, loadAdapter, loadBase } from "../adapter/adapter-folder.ts";
import { type Base, type BaseFolder, recordBase } from "../adapter/base.ts";
import { broadcastTensors } from "../broadcast-tensors.ts";
import type { DescribedModel } from "./model-of-run.ts";
import { onEveryRank } from "./on-every-rank.ts";

/** Runs `load` on one rank, and gives all others the tensors that it sets. */
async function loadOn(
  reader: number,
  load: () => Promise<void>,
  tensors: readonly (readonly [name: string, tensor: Tensor])[],
  group: Group,
): Promise<void> {
  await onEveryRank(group, () => (group.rank === reader ? load() : undefined));
  await broadcastTensors(
    tensors.map(([, tensor]) => tensor),
    reader,
    group,
  );
}

/** As `loadOn`; where every rank has the same files in its folder of weights, `load` runs on all, and none is sent. */
async function loadSameOn(
  reader: number,
  weights: BaseFolder,
  load: () => Promise<void>,
  tensors: readonly (readonly [name: string, tensor: Tensor])[],
  group: Group,
): Promise<void> {
  if (await isOnEveryRank(reader, weights, group)) await onEveryRank(group, load);
  else await loadOn(reader, load, tensors, group);
}

/** By names, lengths and checksums: one small message. The reader's files are read again where it has no record. */
async function isOnEveryRank(reader: number, { folder, files }: BaseFolder, group: Group): Promise<boolean> {
  if (group.size === 1) return true;
  const here = group.rank === reader && files ? files : (await recordBase(folder).catch(() => undefined))?.files;
  const mine = JSON.stringify(here?.map(({ name, bytes, crc32 }) => [name, bytes, crc32]) ?? []);
  const all = new Set(await onEveryRank(group, () => mine));
  return all.size === 1 && !all.has("[]");
}

/** Weights with which a run begins; an adapter keeps its own. With `newHead` those of the head stay as they are. */
export async function loadInitialOn(
  reader: number,
  weights: BaseFolder,
  model: Model,
  group: Group,
  { newHead = false } = {},
): Promise<void> {
  const state = baseStateOf(model);
  const load = () => loadModel(weights.folder, state, newHead ? withNewHead(model) : model);
  await loadSameOn(reader, weights, load, state, group);
  // What no file has is drawn, and may differ in its last bits between processors.
  const drawn = state.filter(([name]) => (newHead && model.headNames?.test(name)) || model.mayBeAbsent?.(name));
  await broadcastTensors(
    drawn.map(([, tensor]) => tensor),
    reader,
    group,
  );
}

/** The weights of a save. */
export function loadWeightsOn(reader: number, folder: string, model: Model, group: Group): Promise<void> {
  const state = baseStateOf(model);
  return loadOn(reader, () => loadModel(folder, state, model), state, group);
}

/** The file of an adapter, for a model that has it. */
export const loadAdapterOn = (reader: number, folder: string, model: Model, group: Group): Promise<void> =>
  loadOn(reader, () => loadAdapter(folder, model), loraOf(model)!.parameters(), group);

/**
 * A whole model as its folder describes it: its weights, or an adapter with its base, which is in `own` on this rank.
 */
export async function loadDescribedOn(
  reader: number,
  folder: string,
  { adapter }: DescribedModel,
  model: Model,
  group: Group,
  own?: string,
): Promise<void> {
  if (!adapter) return loadInitialOn(reader, { folder }, model, group);
  await loadBaseOn(reader, async () => adapter, model, group, own);
  await loadAdapterOn(reader, folder, model, group);
}

/** The base of an adapter that one rank describes. `own`: its folder on this rank. Resolves to it. */
export async function loadBaseOn(
  reader: number,
  described: () => Promise<DescribedAdapter>,
  model: Model,
  group: Group,
  own?: string,
): Promise<Base> {
  const found = await onEveryRank(group, async () => (group.rank === reader ? (await described()).base : null));
  const base = found[reader]!;
  if ("folder" in base) {
    const here = own === undefined || group.rank === reader ? base : { folder: own };
    await loadSameOn(reader, here, () => loadBase(here, model), loraOf(model)!.frozenState(), group);
  }
  return base;
}
