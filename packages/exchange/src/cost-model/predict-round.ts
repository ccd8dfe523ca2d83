/**
 * Predicts the time of a round of requests, which an optimizer's step makes at the same time (exchange.ts): all means
 * as one, all votes with one outcome as one, by predict.ts; and everything else by its bytes, up to owners and down
 * again:
 *
 *   2 α + bytes of the rank that sends most · β
 *
 * For computed means, of which one rank may own all, up and down are apart, each with the bytes of the rank that sends
 * or receives most; 4 α where they are carried by slices (kinds/computed-mean.ts). Where only one way is taken, it is
 * half of that.
 *
 * They share the wire, so their times are added. Computing is left out where predict.ts does not know it, but for the
 * signs of votes, which every scheme writes and reads.
 */

import type { ChosenSchemes } from "../chosen-schemes.ts";
import { busiestBytes, ownedVectors, takesSlices } from "../kinds/computed-mean.ts";
import { joinedMeans } from "../kinds/mean.ts";
import { joinedVotes } from "../kinds/vote.ts";
import { bytesOfRound, type Message, ofKind } from "../messages.ts";
import type { AutoVoteScheme } from "../votes/auto.ts";
import { planesOf } from "../votes/outcome.ts";
import type { Measured } from "./measure-link.ts";
import { type PredictedVote, predictedVotes, predictMean, predictVote } from "./predict.ts";

/** The predicted time of a round on the slowest rank, in seconds. RangeError if a scheme cannot have so many ranks. */
export function predictRound(
  round: readonly Message[],
  ranks: number,
  schemes: ChosenSchemes,
  measured: Measured,
): number {
  if (ranks === 1) return 0;
  const byBytes = (messages: readonly Message[]) => {
    if (messages.length === 0) return 0;
    return 2 * measured.link.alphaLong + mostBytes(messages, ranks, schemes) * measured.link.beta;
  };
  const n = joinedMeans(ofKind(round, "mean")).reduce((sum, length) => sum + length, 0);
  let seconds = n > 0 ? predictMean(schemes.means.type, { n, ranks }, measured).seconds : 0;
  for (const [outcome, elements] of joinedVotes(ofKind(round, "vote"))) {
    const { votes } = schemes;
    const name = "choice" in votes ? (votes as AutoVoteScheme).choice(elements, ranks, outcome).scheme : votes.name;
    seconds += predictedVotes.includes(name as PredictedVote)
      ? predictVote(
          name as PredictedVote,
          { n: elements, ranks, planes: planesOf(outcome, ranks), floats: true },
          measured,
        ).seconds
      : byBytes([{ kind: "vote", n: elements, outcome }]) + elements * (measured.codec.encode + measured.codec.decode);
  }
  for (const { vectors, only } of ownedVectors(round, ranks, schemes)) {
    const { owners, slices } = busiestBytes(vectors, ranks);
    const [messages, bytes] = takesSlices(vectors, ranks, only) ? [2, slices] : [1, owners];
    seconds += messages * (only ? 1 : 2) * measured.link.alphaLong + bytes * measured.link.beta;
  }
  return seconds + byBytes(round.filter((message) => !isPredicted(message)));
}

const isPredicted = (message: Message) => message.kind === "mean" || message.kind === "vote" || "owner" in message;

/**
 * The share of a round's time in which a server sends outcomes and receives nothing. Votes of the next round come to it
 * meanwhile: its link carries both directions at once. 0 where a round is not of such votes alone.
 */
export function returningShare(round: readonly Message[], ranks: number, { votes }: ChosenSchemes): number {
  const share = returning[votes.name];
  if (share === undefined || round.length === 0 || round.some(({ kind }) => kind !== "vote")) return 0;
  return Math.min(
    ...[...joinedVotes(ofKind(round, "vote")).keys()].map((outcome) => share(planesOf(outcome, ranks), ranks)),
  );
}

/** The share by scheme, for N bits from each other rank up and d planes of N bits down. */
const returning: Readonly<Record<string, (d: number, P: number) => number>> = {
  "parameter-server": (d) => d / (1 + d), // (P − 1) N up, d (P − 1) N down
  // (P − 1) N up, then d (P − 1)/P N scattered; as much once more in an all-gather, which takes both directions.
  "parameter-server-efficient": (d, P) => d / (P + 2 * d),
};

/**
 * Bytes of the rank that sends most: the first or the last one, whose chunks are the largest. Groups of
 * ranks have the same size, so one rank of its group stands for all.
 */
function mostBytes(messages: readonly Message[], ranks: number, schemes: ChosenSchemes): number {
  const bytesOf = (some: readonly Message[], rank: number) => bytesOfRound(some, ranks, rank, schemes);
  const inGroups = messages.flatMap((message) => ("members" in message ? bytesOf([message], message.members[0]!) : []));
  const ofAll = messages.filter((message) => !("members" in message));
  const senders = new Set([0, ranks - 1]);
  return inGroups.reduce((a, b) => a + b, 0) + Math.max(...[...senders].map((rank) => bytesOf(ofAll, rank)));
}
