/** Which schemes carry a run's votes and means, and what an optimizer's messages cost with them. */
import { type DenseScheme, dense } from "./schemes/dense.ts";
import { allToAll } from "./votes/all-to-all.ts";
import type { VoteScheme } from "./votes/vote-scheme.ts";

export interface ChosenSchemes {
  /** How votes are counted. */
  readonly votes: VoteScheme;
  /** How means travel. */
  readonly means: DenseScheme;
}

/** What sends least without giving anything up. */
export const standardSchemes: ChosenSchemes = { votes: allToAll(), means: dense("f32") };

/** Payload bytes that one rank sends for n elements. */
export type BytesOf = (n: number, ranks: number, rank: number, schemes?: ChosenSchemes) => number;

export const meanBytes: BytesOf = (n, ranks, rank, { means } = standardSchemes) => means.cost(n, ranks, rank).bytes;

export const majorityBytes: BytesOf = (n, ranks, rank, { votes } = standardSchemes) =>
  votes.cost(n, ranks, rank, "plus").bytes;

export const majorityOrZeroBytes: BytesOf = (n, ranks, rank, { votes } = standardSchemes) =>
  votes.cost(n, ranks, rank, "zero").bytes;

export const tallyBytes: BytesOf = (n, ranks, rank, { votes } = standardSchemes) =>
  votes.cost(n, ranks, rank, "tally").bytes;
