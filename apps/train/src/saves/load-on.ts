/** One rank reads weights, and all others get them from it. */
import { type ForeignWeights, loadModel } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { baseStateOf, loraOf, type Model } from "@terse/models";
import type { Tensor } from "@terse/tensor";
import { type DescribedAdapter, loadAdapter, loadBase } from "../adapter/adapter-folder.ts";
import type { Base } from "../adapter/base.ts";
import { broadcastTensors } from "../broadcast-tensors.ts";
import { onEveryRank } from "./on-every-rank.ts";

/** Runs `load` on one rank, and gives all others the tensors that it sets. */
export async function loadOn(
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

/** The weights of a model's folder; an adapter keeps its own. */
export function loadWeightsOn(
  reader: number,
  folder: string,
  model: Model,
  group: Group,
  names: ForeignWeights = model,
): Promise<void> {
  const state = baseStateOf(model);
  return loadOn(reader, () => loadModel(folder, state, names), state, group);
}

/** The file of an adapter, for a model that has it. */
export const loadAdapterOn = (reader: number, folder: string, model: Model, group: Group): Promise<void> =>
  loadOn(reader, () => loadAdapter(folder, model), loraOf(model)!.parameters(), group);

/** The base of an adapter that one rank describes. Resolves to it. */
export async function loadBaseOn(
  reader: number,
  described: () => Promise<DescribedAdapter>,
  model: Model,
  group: Group,
): Promise<Base> {
  const found = await onEveryRank(group, async () => (group.rank === reader ? (await described()).base : null));
  const base = found[reader]!;
  if ("folder" in base) await loadOn(reader, () => loadBase(base, model), loraOf(model)!.frozenState(), group);
  return base;
}
