/**
 * One vote, from the signs of this rank to the outcome of all ranks' votes. Several vectors of signs are one message:
 *
 *   lay out      one vector of all signs, and memory for the outcome's planes        joint-votes.ts, outcome.ts
 *   encode       the scheme packs the signs, piece by piece                          packed-bits.ts
 *   carry        the scheme sends the votes, counts them and returns the outcome     all-to-all.ts, or another scheme
 *   hand out     every vector gets its piece of the outcome
 */
import type { ExchangeContext } from "../exchange-context.ts";
import { PackedBits, wordsOf } from "../packed-bits.ts";
import { checkNotes } from "../refusal.ts";
import { joinVotes } from "../votes/joint-votes.ts";
import { type Outcome, planesOf, type Result, resultOf } from "../votes/outcome.ts";
import { checkOutcome, noteOfVotes, type VoteScheme } from "../votes/vote-scheme.ts";
import type { Kind } from "./kind.ts";

interface VoteOptions {
  readonly outcome: Outcome;
}

/** One vector of signs, and its outcome when it has been carried. The outcome takes over u's memory. */
interface Part extends VoteOptions {
  readonly u: PackedBits;
  result?: Result;
}

export interface VoteMessage extends VoteOptions {
  readonly kind: "vote";
  readonly n: number;
}

/** The outcome of all ranks' u, the same bits on every rank; takes over u's memory. */
export const vote: Kind<PackedBits, VoteOptions, Part, Result, VoteMessage> = {
  name: "vote",
  memory: "own",
  ask: (u, { outcome }) => ({ u, outcome }),
  // A dense vote has one sign of zero for all its elements.
  key: ({ u, outcome }, { schemes: { votes } }) => (votes.dense ? `vote ${outcome} ${u.zero}` : `vote ${outcome}`),
  async carry(parts, context, { schemes: { votes } }) {
    const joint = joinVotes(parts.map(({ u }) => u));
    const pieces = joint.split(await counted(joint.bits, votes, parts[0]!.outcome, context));
    for (const [i, part] of parts.entries()) part.result = pieces[i]!;
  },
  result: ({ result }) => result!,
  cost: (messages, ranks, rank, { votes }) =>
    [...joinedVotes(messages)].map(([outcome, n]) => votes.cost(n, ranks, rank, outcome)),
};

/** The elements of each vote: votes with one outcome are one, in which each begins at a word. */
export function joinedVotes(messages: readonly VoteMessage[]): Map<Outcome, number> {
  const elementsOf = (sameOutcome: readonly VoteMessage[]) =>
    sameOutcome.length === 1 ? sameOutcome[0]!.n : sameOutcome.reduce((sum, { n }) => sum + 64 * wordsOf(n), 0);
  return new Map(
    [...Map.groupBy(messages, ({ outcome }) => outcome)].map(([outcome, sameOutcome]) => [
      outcome,
      elementsOf(sameOutcome),
    ]),
  );
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
