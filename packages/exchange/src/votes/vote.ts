/**
 * One vote, from the signs of this rank to the outcome of all ranks' votes. Several vectors of signs are one message:
 *
 *   lay out      one vector of all signs, and memory for the outcome's planes        joint-votes.ts, outcome.ts
 *   encode       the scheme packs the signs, piece by piece                          packed-bits.ts
 *   carry        the scheme sends the votes, counts them and returns the outcome     all-to-all.ts, or another scheme
 *   hand out     every vector gets its piece of the outcome
 */
import type { Group } from "@terse/collectives";
import type { CostOf } from "../cost.ts";
import { type CallOptions, carryOver, type ExchangeContext } from "../exchange-context.ts";
import { joinVotes } from "../joint-votes.ts";
import { PackedBits, type Tally, type Ternary } from "../packed-bits.ts";
import { checkNotes } from "../refusal.ts";
import { standardSchemes } from "../schemes.ts";
import { type Outcome, planesOf, type Result, resultOf } from "./outcome.ts";
import { checkOutcome, noteOfVotes, type VoteScheme } from "./vote-scheme.ts";

/** One vector of signs, and its outcome after `carryVotes`. The outcome takes over u's memory. */
export interface VoteRequest {
  readonly u: PackedBits;
  result?: Result;
}

/** Votes on several vectors in one message. */
export async function carryVotes(
  requests: readonly VoteRequest[],
  scheme: VoteScheme,
  outcome: Outcome,
  context: ExchangeContext,
): Promise<void> {
  const joint = joinVotes(requests.map(({ u }) => u));
  const pieces = joint.split(await counted(joint.bits, scheme, outcome, context));
  for (const [i, request] of requests.entries()) request.result = pieces[i]!;
}

async function counted(u: PackedBits, scheme: VoteScheme, outcome: Outcome, context: ExchangeContext): Promise<Result> {
  checkOutcome(scheme, outcome);
  const { size, scratch, watch } = context;
  if (!scheme.dense) u.watch = watch;
  if (size === 1) {
    u.fill();
    checkNotes([noteOfVotes(u, context)]);
    return resultOf(outcome, [u], 1);
  }
  if (watch?.wantsVotes && !scheme.dense) {
    u.fill();
    watch.votes(u);
  }
  // While the vote waits in the queue, its signs are encoded.
  if (context.up.waits && !scheme.dense) u.fill();
  const planes = [u];
  while (planes.length < planesOf(outcome, size)) planes.push(new PackedBits(u.length, scratch));
  try {
    await scheme.carry(planes, outcome, context);
    return resultOf(outcome, planes, size);
  } catch (error) {
    for (const plane of planes.slice(1)) plane[Symbol.dispose]();
    throw error;
  }
}

export interface VoteOptions extends CallOptions {
  readonly outcome: Outcome;
}

/** The outcome of all ranks' u, the same bits on every rank; takes over u's memory. All ranks call it with the same length. */
export async function vote(
  scheme: VoteScheme,
  group: Group,
  u: PackedBits,
  { outcome, ...call }: VoteOptions,
): Promise<Result> {
  const request: VoteRequest = { u };
  await carryOver(group, call, (context) => carryVotes([request], scheme, outcome, context));
  return request.result!;
}

const { votes } = standardSchemes;

/** The majority of all ranks' u, by the standard scheme; takes over u's memory. */
export function majority(group: Group, u: PackedBits, tie: "plus" | "minus", call?: CallOptions): Promise<PackedBits> {
  return vote(votes, group, u, { ...call, outcome: tie }) as Promise<PackedBits>;
}

/**
 * The majority of all ranks' u, or zero for a tie; takes over u's memory.
 * Liu et al. 2024, "Majority Vote": Δ = sign(Σ δ), sign(0) = 0, https://arxiv.org/abs/2404.00438
 */
export function majorityOrZero(group: Group, u: PackedBits, call?: CallOptions): Promise<PackedBits | Ternary> {
  return vote(votes, group, u, { ...call, outcome: "zero" }) as Promise<PackedBits | Ternary>;
}

/**
 * The number of ranks that voted plus on each element; takes over u's memory.
 * Liu et al. 2024, "Averaging": Δ = (1/P) Σ δ, https://arxiv.org/abs/2404.00438
 */
export function tally(group: Group, u: PackedBits, call?: CallOptions): Promise<Tally> {
  return vote(votes, group, u, { ...call, outcome: "tally" }) as Promise<Tally>;
}

export const majorityCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "plus");

export const majorityOrZeroCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "zero");

export const tallyCost: CostOf = (n, ranks, rank) => votes.cost(n, ranks, rank, "tally");
