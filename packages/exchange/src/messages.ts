/** What the requests of a step cost a rank, as closed forms: requests that travel together are counted together, as exchange.ts joins them. */
import type { Codec } from "@terse/codecs";
import type { ChosenSchemes } from "./schemes.ts";
import { sumOfFieldsCost } from "./sums/fields.ts";
import { signOfLevelsCost, sumOfLevelsCost } from "./sums/levels.ts";
import { meanErrorCompensatedCost } from "./sums/mean-error-compensated.ts";
import { sparseCost } from "./sums/sparse.ts";
import { sumCost } from "./sums/sum.ts";
import type { Outcome } from "./votes/outcome.ts";

/** One request for a vector of n elements, as far as its cost depends on it. */
export type Message =
  /** `offset`: where the vector lies in the memory that the exchange calls `region`; neighbours there are one vector. */
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

/** Payload bytes that one rank sends for requests of one turn. */
export function bytesOfTurn(
  turn: readonly Message[],
  ranks: number,
  rank: number,
  { votes, means }: ChosenSchemes,
): number {
  let bytes = means.costTogether(joinedMeans(turn), ranks, rank).bytes;
  const voters = Map.groupBy(
    turn.filter((message) => message.kind === "vote"),
    ({ outcome }) => outcome,
  );
  for (const [outcome, together] of voters) {
    const [{ n: alone }] = together as [Message];
    const n = together.length === 1 ? alone : together.reduce((sum, each) => sum + 64 * Math.ceil(each.n / 64), 0);
    bytes += votes.cost(n, ranks, rank, outcome).bytes;
  }
  for (const message of turn) {
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

/** The lengths of the vectors that are averaged, neighbours as one. */
function joinedMeans(turn: readonly Message[]): number[] {
  const joined: number[] = [];
  let end: number | undefined; // of the vector before, in the region
  for (const message of turn) {
    if (message.kind !== "mean") continue;
    const { n, offset } = message;
    if (offset !== undefined && offset === end) joined[joined.length - 1]! += n;
    else joined.push(n);
    end = offset === undefined ? undefined : offset + n;
  }
  return joined;
}
