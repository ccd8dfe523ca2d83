/**
 * The averaging vote: one bit up, the number of plus votes down. Liu et al. 2024, "Averaging": Δ = (1/P) Σ δ, https://arxiv.org/abs/2404.00438
 *
 * Sent by a rank: (1 + K)(P − 1) messages, 8 ((W − w) + K (P − 1) w) bytes, for K = ⌈log2(P + 1)⌉ bit planes of the count.
 * Held beside u: 8 P w bytes of votes, and 8 (K − 1) W of the planes above the first.
 */
import { tally as count, tallyPlanes } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { Bits, bytesOf, Tally } from "../bits.ts";
import { type Cost, costOf } from "../cost.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { checkNotes } from "../refusal.ts";
import { scratchOf } from "../scratch.ts";
import { Ballots } from "./majority.ts";

/** How many ranks voted plus, for every element; takes over u's memory. `note` and `gather` as in `majority`. */
export async function tally(group: Group, u: Bits, note = 0, gather: Group = group): Promise<Tally> {
  if (group.size === 1) {
    checkNotes([note]);
    return new Tally([u], 1);
  }
  const starts = partition(u.length, group.size);
  const mine = elementsOf(u.length, starts, group.rank);
  const scratch = scratchOf(group);
  const planes = [u, ...Array.from({ length: tallyPlanes(group.size) - 1 }, () => new Bits(u.length, scratch))];
  const chunks = planes.map((plane) => parts(plane.wire, starts)); // [plane][rank]
  using ballots = new Ballots(mine, group.size, scratch);

  checkNotes(await group.allToAll(chunks[0]!, ballots.wires, { note }));
  count(
    chunks.map((of) => signsOf(of[group.rank]!, mine)),
    ballots.signs,
    mine,
  );
  await Promise.all(chunks.map((chunk) => gather.allGather(chunk)));
  return new Tally(planes, group.size);
}

export function tallyCost(n: number, ranks: number, rank: number): Cost {
  if (ranks === 1) return costOf([]);
  const sizes = partBytes(partition(n, ranks));
  const planes = Array.from({ length: tallyPlanes(ranks) }, () => allGatherBytes(sizes, rank));
  return costOf([allToAllBytes(sizes, rank), ...planes], ranks * sizes[rank]! + (planes.length - 1) * bytesOf(n));
}

/** Payload bytes that one rank sends. */
export function tallyBytes(n: number, ranks: number, rank: number): number {
  return tallyCost(n, ranks, rank).bytes;
}
