/**
 * Majority vote with one bit up and one bit down. Ishikawa et al. 2024, §3.1 "1-bit compressed allreduce", https://arxiv.org/abs/2411.16462
 *
 *   1. all-to-all    every rank gets everybody's signs for the words it owns
 *   2. vote          it counts them in the packed domain
 *   3. all-gather    and gives the result to everybody
 *
 * Sent by a rank: 2 (P − 1) messages, 8 ((W − w) + (P − 1) w) bytes, for W = ⌈n / 64⌉ words of which it owns w ≈ W / P.
 * Held beside u: 8 P w bytes, what the ranks sent for its words.
 */
import { majority as vote } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { Bits } from "../bits.ts";
import { type Cost, costOf } from "../cost.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { checkNotes } from "../refusal.ts";
import { type Scratch, scratchOf } from "../scratch.ts";

/**
 * u ← the majority of all ranks' u, the same bits on every rank. `note`: this rank's refusal, 0 if it has none. `gather`: the group
 * that the result goes over, so that the next vote's signs need not wait for it.
 */
export async function majority(
  group: Group,
  u: Bits,
  tie: "plus" | "minus",
  note = 0,
  gather: Group = group,
): Promise<Bits> {
  if (group.size === 1) {
    checkNotes([note]);
    return u;
  }
  const starts = partition(u.length, group.size);
  const mine = elementsOf(u.length, starts, group.rank);
  const chunks = parts(u.wire, starts);
  using ballots = new Ballots(mine, group.size, scratchOf(group));

  checkNotes(await group.allToAll(chunks, ballots.wires, { note }));
  vote(signsOf(chunks[group.rank]!, mine), ballots.signs, mine, { tie });
  await gather.allGather(chunks);
  return u;
}

export function majorityCost(n: number, ranks: number, rank: number): Cost {
  const sizes = partBytes(partition(n, ranks));
  if (ranks === 1) return costOf([]);
  return costOf([allToAllBytes(sizes, rank), allGatherBytes(sizes, rank)], ranks * sizes[rank]!);
}

/** Payload bytes that one rank sends. */
export function majorityBytes(n: number, ranks: number, rank: number): number {
  return majorityCost(n, ranks, rank).bytes;
}

/** What the ranks sent for the words of one owner: P vectors of `n` signs. */
export class Ballots implements Disposable {
  readonly wires: readonly Uint8Array[];
  readonly signs: readonly Uint8Array[];
  readonly #memory: readonly Bits[];

  constructor(n: number, ranks: number, scratch: Scratch) {
    this.#memory = Array.from({ length: ranks }, () => new Bits(n, scratch));
    this.wires = this.#memory.map(({ wire }) => wire);
    this.signs = this.#memory.map(({ signs }) => signs);
  }

  [Symbol.dispose](): void {
    for (const bits of this.#memory) bits[Symbol.dispose]();
  }
}
