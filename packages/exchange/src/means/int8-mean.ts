/**
 * The mean of a vector of f32, sent as whole numbers of 8 bits, in units that the ranks share for each block of 512
 * elements. It is rounded once, on the way up, and added exactly (sum-of-fields.ts).
 *
 *   u = max over ranks of max |x_r| in the block / 127    rounded up to fp32
 *   x ← (1/P) u Σ_r round(x_r / u)                        the same bits on every rank
 *
 * The error is at most u/2, and fp32's rounding.
 *
 * A rank
 *
 *   sends      about 2 (P − 1)/P times 4 bytes a block for u, and (P − 1)/P times 3 bytes an element: 1 up and 2 down,
 *              for 2 to 257 ranks. That is three quarters of what 16 bits take
 *   messages   those of the small all-reduce, and 2 (P − 1)
 *   holds      as `sumOfFields`
 */
import { type Floats, int8 } from "@terse/codecs";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { carryFields, checkFields, sumsOfFieldsCost } from "../kinds/sum-of-fields.ts";

export const int8Codec = int8({ block: 512 });

/** The means of vectors over more than one rank. */
export async function carryInt8Means(vectors: readonly Floats[], context: ExchangeContext): Promise<void> {
  const requests = vectors.map((x) => ({ x, options: { codec: int8Codec, scale: 1 / context.size } }));
  for (const request of requests) checkFields("int8 mean", context.up.group, request);
  await carryFields(requests, context);
}

/** The cost for vectors of these lengths in one round, on more than one rank. */
export function int8MeansCost(lengths: readonly number[], ranks: number, rank: number): Cost {
  const vectors = lengths.map((n) => ({ n, codec: int8Codec }));
  return sumsOfFieldsCost(vectors, ranks, rank);
}
