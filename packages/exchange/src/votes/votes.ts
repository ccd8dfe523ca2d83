/** The outcomes of the papers, over the scheme that sends least. */
import type { Group } from "@terse/collectives";
import { standardSchemes } from "../chosen.ts";
import type { CostOf } from "../cost.ts";
import type { PackedBits, Tally, Ternary } from "../packed-bits.ts";

const { votes } = standardSchemes;

/**
 * u ← the majority of all ranks' u, the same bits on every rank. `note`: this rank's refusal, 0 if it has none. `gather`: the group
 * that the result goes over, so that the next vote's signs need not wait for it.
 */
export function majority(
  group: Group,
  u: PackedBits,
  tie: "plus" | "minus",
  note = 0,
  gather = group,
): Promise<PackedBits> {
  return votes.vote(group, u, { outcome: tie, note, gather }) as Promise<PackedBits>;
}

/**
 * The majority of all ranks' u, or zero where as many voted each way; takes over u's memory. `note` and `gather` as in `majority`.
 * Liu et al. 2024, "Majority Vote": Δ = sign(Σ δ), sign(0) = 0, https://arxiv.org/abs/2404.00438
 */
export function majorityOrZero(group: Group, u: PackedBits, note = 0, gather = group): Promise<PackedBits | Ternary> {
  return votes.vote(group, u, { outcome: "zero", note, gather }) as Promise<PackedBits | Ternary>;
}

/**
 * How many ranks voted plus, for every element; takes over u's memory. `note` and `gather` as in `majority`.
 * Liu et al. 2024, "Averaging": Δ = (1/P) Σ δ, https://arxiv.org/abs/2404.00438
 */
export function tally(group: Group, u: PackedBits, note = 0, gather = group): Promise<Tally> {
  return votes.vote(group, u, { outcome: "tally", note, gather }) as Promise<Tally>;
}

export const majorityCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "plus");

export const majorityOrZeroCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "zero");

export const tallyCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "tally");
