import type { TypedArray } from "@terse/tensor";
import type { Optimizer, StoredState } from "../index.ts";

/** The state of an optimizer as a checkpoint reads it back. */
export async function stored(optimizer: Optimizer): Promise<StoredState> {
  const { tensors, scalars } = await optimizer.state();
  const read = new Map<string, TypedArray>();
  for (const [name, tensor] of tensors) read.set(name, (await tensor.toTypedArray()).slice());
  return { tensors: read, scalars: structuredClone(scalars) };
}

/** Saves by rank, of which a rank that goes on among as many ranks needs its own only. */
export function savesOf(rank: number, ranks: number, save: StoredState): StoredState[] {
  const none: StoredState = { tensors: new Map(), scalars: {} };
  return Array.from({ length: ranks }, (_, r) => (r === rank ? save : none));
}
