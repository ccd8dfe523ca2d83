/**
 * The mean of a vector over the ranks, in its own precision: a ring all-reduce.
 * Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", doi:10.1016/j.jpdc.2008.09.002
 *
 * Sent by a rank: one message, streamed in 2 (P − 1) steps, about 2 (P − 1)/P · 4 n bytes (f32); P − 1 messages of 4 n bytes
 * while the vector has at most 8 KiB.
 */
import { allReduceBytes, type BufferLike, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";

/** x ← mean over ranks of x, the same bits on every rank. What is not finite on one rank is so on all afterwards. */
export async function mean(group: Group, x: BufferLike): Promise<void> {
  await group.allReduce(x, "mean");
}

export function meanCost(n: number, ranks: number, rank: number): Cost {
  return costOf([allReduceBytes(n, 4, ranks, rank)]);
}
