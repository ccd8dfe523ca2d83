/**
 * The mean of a vector of f32 that travels in whole numbers of 8 bits, by a unit that the ranks share in each block of 512: rounded once,
 * on the way up, and added exactly (fields.ts).
 *
 *   u = max over ranks of max |x_r| in the block / 127          the least fp32 that is no less
 *   x ← (1/P) u Σ_r round(x_r / u)                              the same bits on every rank; errs by at most u/2, and fp32's rounding
 *
 * Sent by a rank, about 2 (P − 1)/P times: 4 bytes a block for u, and of an element 1 byte up and 2 down from 2 to 257 ranks, on average
 * 1.5: three quarters of 16 bits. Messages: the small all-reduce's, and 2 (P − 1).
 * Held: as `sumOfFields`, or what came and 4 bytes an element of the largest part, where that is more.
 */
import { int8 } from "@terse/codecs";
import type { BufferLike } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { ownedChunks } from "../owned-chunks.ts";
import { checkNotes } from "../refusal.ts";
import { carryFields, checkFields, sumOfFieldsCost, sumOfFieldsHeld } from "../sums/fields.ts";
import { floatsOf } from "./floats-of.ts";

export const int8Codec = int8({ block: 512 });

/** One rank keeps its vectors as they are: nothing travels. */
export async function carryInt8Means(vectors: readonly BufferLike[], context: ExchangeContext): Promise<void> {
  const { size } = context;
  if (size === 1) return checkNotes([context.note]);
  const requests = vectors.map((vector) => {
    const x = floatsOf(vector);
    return { x, options: { into: x, codec: int8Codec, scale: 1 / size }, replaces: true };
  });
  for (const request of requests) checkFields("int8 mean", context.up.group, request);
  await carryFields(requests, context);
}

export function int8MeanCost(n: number, ranks: number, rank: number): Cost {
  if (ranks === 1) return costOf([]);
  const cost = sumOfFieldsCost(n, ranks, rank, int8Codec);
  const chunks = ownedChunks(int8Codec, n, ranks);
  const part = Math.max(...Array.from({ length: ranks }, (_, r) => chunks.lengthOf(r)));
  return { ...cost, peakBytes: Math.max(cost.peakBytes, sumOfFieldsHeld(n, ranks, int8Codec) + 4 * part) };
}
