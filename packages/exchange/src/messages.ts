/** The bytes of a step's requests, in closed form. Requests that exchange.ts joins into one message are counted as one. */
import type { Codec } from "@terse/codecs";
import { wordsOf } from "./packed-bits.ts";
import type { ChosenSchemes } from "./schemes.ts";
import { sumOfFieldsCost } from "./sums/fields.ts";
import { signOfLevelsCost, sumOfLevelsCost } from "./sums/levels.ts";
import { meanErrorCompensatedCost } from "./sums/mean-error-compensated.ts";
import { sparseCost } from "./sums/sparse.ts";
import { sumCost } from "./sums/sum.ts";
import type { Outcome } from "./votes/outcome.ts";

/** The parts of a request that its cost depends on: its kind, the n elements of its vector, and its codec. */
export type Message =
  /** `offset`: the first element in the exchange's `memory`; vectors that are neighbours there are averaged as one. */
  | { readonly kind: "mean"; readonly n: number; readonly offset?: number | undefined }
  | { readonly kind: "vote"; readonly n: number; readonly outcome: Outcome }
  | { readonly kind: "meanErrorCompensated"; readonly n: number; readonly codec?: Codec | undefined }
  | { readonly kind: keyof typeof sumCosts; readonly n: number; readonly codec: Codec };

const sumCosts = {
  sum: sumCost,
  sumOfFields: sumOfFieldsCost,
  sumOfLevels: sumOfLevelsCost,
  signOfLevels: signOfLevelsCost,
  sparse: sparseCost,
} as const;

/** Payload bytes that one rank sends for the requests of one round. */
export function bytesOfRound(
  round: readonly Message[],
  ranks: number,
  rank: number,
  { votes, means }: ChosenSchemes,
): number {
  let bytes = means.costTogether(joinedMeans(round), ranks, rank).bytes;
  const votesByOutcome = Map.groupBy(
    round.filter((message) => message.kind === "vote"),
    ({ outcome }) => outcome,
  );
  for (const [outcome, together] of votesByOutcome) {
    const [{ n: single }] = together as [Message];
    const n = together.length === 1 ? single : together.reduce((sum, each) => sum + 64 * wordsOf(each.n), 0);
    bytes += votes.cost(n, ranks, rank, outcome).bytes;
  }
  for (const message of round) {
    if (message.kind === "mean" || message.kind === "vote") continue;
    const { kind, n, codec } = message;
    const cost =
      kind === "meanErrorCompensated"
        ? meanErrorCompensatedCost(n, ranks, rank, codec)
        : sumCosts[kind](n, ranks, rank, codec);
    bytes += cost.bytes;
  }
  return bytes;
}

/** The lengths of the vectors that are averaged. Neighbours count as one vector. */
function joinedMeans(round: readonly Message[]): number[] {
  const joined: number[] = [];
  let end: number | undefined; // offset + n of the vector before
  for (const message of round) {
    if (message.kind !== "mean") continue;
    const { n, offset } = message;
    if (offset !== undefined && offset === end) joined[joined.length - 1]! += n;
    else joined.push(n);
    end = offset === undefined ? undefined : offset + n;
  }
  return joined;
}
