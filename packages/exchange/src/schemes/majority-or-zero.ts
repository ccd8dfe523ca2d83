/**
 * Majority vote in which a tie is zero: one bit up; one bit down for an odd number of ranks, which cannot tie, and two for
 * an even one. Liu et al. 2024, "Majority Vote": Δ = sign(Σ δ), sign(0) = 0, https://arxiv.org/abs/2404.00438
 *
 * Sent by a rank: 2 (P − 1) or 3 (P − 1) messages, 8 ((W − w) + d (P − 1) w) bytes, d = 1 or 2 planes down.
 * Held beside u: 8 P w bytes of votes, and for an even number of ranks 8 W of the second plane.
 */
import { majorityOrZero as vote } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { Bits, bytesOf, Ternary } from "../bits.ts";
import { type Cost, costOf } from "../cost.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { checkNotes } from "../refusal.ts";
import { scratchOf } from "../scratch.ts";
import { Ballots, majority, majorityCost } from "./majority.ts";

/** The majority of all ranks' u, or zero; takes over u's memory. `note` and `gather` as in `majority`. */
export async function majorityOrZero(group: Group, u: Bits, note = 0, gather: Group = group): Promise<Bits | Ternary> {
  if (group.size % 2 === 1) return majority(group, u, "plus", note, gather);

  const starts = partition(u.length, group.size);
  const mine = elementsOf(u.length, starts, group.rank);
  const nonzero = new Bits(u.length, scratchOf(group));
  const plusChunks = parts(u.wire, starts);
  const nonzeroChunks = parts(nonzero.wire, starts);
  using ballots = new Ballots(mine, group.size, scratchOf(group));

  checkNotes(await group.allToAll(plusChunks, ballots.wires, { note }));
  vote(signsOf(plusChunks[group.rank]!, mine), signsOf(nonzeroChunks[group.rank]!, mine), ballots.signs, mine);
  await Promise.all([gather.allGather(plusChunks), gather.allGather(nonzeroChunks)]);
  return new Ternary(u, nonzero);
}

export function majorityOrZeroCost(n: number, ranks: number, rank: number): Cost {
  if (ranks % 2 === 1) return majorityCost(n, ranks, rank);
  const sizes = partBytes(partition(n, ranks));
  const plane = allGatherBytes(sizes, rank);
  return costOf([allToAllBytes(sizes, rank), plane, plane], ranks * sizes[rank]! + bytesOf(n));
}

/** Payload bytes that one rank sends. */
export function majorityOrZeroBytes(n: number, ranks: number, rank: number): number {
  return majorityOrZeroCost(n, ranks, rank).bytes;
}
