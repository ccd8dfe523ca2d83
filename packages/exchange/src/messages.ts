/** The bytes of a step's requests, in closed form. Requests that exchange.ts joins into one message are counted as one. */
import type { Codec } from "@terse/codecs";
import type { Cost } from "./cost.ts";
import { wordsOf } from "./packed-bits.ts";
import type { ChosenSchemes } from "./schemes.ts";
import { type AmongKind, amongCost } from "./sums/among.ts";
import type { OneWay } from "./sums/by-owners.ts";
import type { OwnedSizes } from "./sums/by-slices.ts";
import { ownedCosts } from "./sums/computed-mean.ts";
import { type Coded, sumsOfFieldsCost } from "./sums/fields.ts";
import { signOfLevelsCost, sumOfLevelsCost, sumsOfLevelsDirectCost } from "./sums/levels.ts";
import { meanErrorCompensatedCost } from "./sums/mean-error-compensated.ts";
import { sparseCost } from "./sums/sparse.ts";
import { sumCost } from "./sums/sum.ts";
import type { Outcome } from "./votes/outcome.ts";

/** The parts of a request that its cost depends on: its kind, the n elements of its vector, and its codec. */
export type Message =
  /** `offset`: the first element in the exchange's `memory`; vectors that are neighbours there are averaged as one. */
  | { readonly kind: "mean"; readonly n: number; readonly offset?: number | undefined }
  /** `result`: the elements of the result, n unless given. */
  | { readonly kind: "computedMean"; readonly n: number; readonly owner: number; readonly result?: number | undefined }
  /** The halves of a computed mean, where something else happens between them. */
  | { readonly kind: "meanAtOwner" | "fromOwner"; readonly n: number; readonly owner: number }
  /** `members`: of this rank's group; n: of x, or of all shards. */
  | { readonly kind: AmongKind; readonly n: number; readonly members: readonly number[] }
  | { readonly kind: "vote"; readonly n: number; readonly outcome: Outcome }
  | { readonly kind: "meanErrorCompensated"; readonly n: number; readonly codec?: Codec | undefined }
  | { readonly kind: keyof typeof sumCosts | keyof typeof joinedCosts; readonly n: number; readonly codec: Codec };

const sumCosts = {
  sum: sumCost,
  sumOfLevels: sumOfLevelsCost,
  signOfLevels: signOfLevelsCost,
  sparse: sparseCost,
} as const;

/** Of vectors whose scales, or fields, go in one all-reduce. */
const joinedCosts = { sumOfFields: sumsOfFieldsCost, sumOfLevelsDirect: sumsOfLevelsDirectCost } as const;

const isJoined = (kind: Message["kind"]): kind is keyof typeof joinedCosts => kind in joinedCosts;

/** Payload bytes that one rank sends for the requests of one round. */
export function bytesOfRound(round: readonly Message[], ranks: number, rank: number, schemes: ChosenSchemes): number {
  return costsOfRound(round, ranks, rank, schemes).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The most memory that the requests of one round hold at once besides their vectors. */
export function memoryOfRound(round: readonly Message[], ranks: number, rank: number, schemes: ChosenSchemes): number {
  return costsOfRound(round, ranks, rank, schemes).reduce((sum, { peakBytes }) => sum + peakBytes, 0);
}

/** Of what travels together, one after the other. */
function costsOfRound(
  round: readonly Message[],
  ranks: number,
  rank: number,
  { votes, means }: ChosenSchemes,
): readonly Cost[] {
  const costs = [means.costTogether(joinedMeans(round), ranks, rank)];
  for (const [outcome, n] of joinedVotes(round)) costs.push(votes.cost(n, ranks, rank, outcome));
  for (const { vectors, only } of ownedVectors(round)) costs.push(...ownedCosts(vectors, ranks, rank, only));
  for (const [kind, costOfAll] of Object.entries(joinedCosts)) {
    const together = round.filter((message) => message.kind === kind) as unknown as Coded[];
    if (together.length > 0) costs.push(costOfAll(together, ranks, rank));
  }
  for (const message of round) {
    if (message.kind === "mean" || message.kind === "vote" || "owner" in message) continue;
    if ("members" in message) {
      costs.push(amongCost(message.kind, message.n, ranks, rank, message.members));
      continue;
    }
    const { kind, n, codec } = message;
    if (isJoined(kind)) continue;
    costs.push(
      kind === "meanErrorCompensated"
        ? meanErrorCompensatedCost(n, ranks, rank, codec)
        : sumCosts[kind](n, ranks, rank, codec),
    );
  }
  return costs;
}

/** The vectors that go to owners, or from them: those that are carried together, and the one way they go. */
export function ownedVectors(
  round: readonly Message[],
): readonly { readonly vectors: readonly OwnedSizes[]; readonly only: OneWay | undefined }[] {
  const of = <K extends Message["kind"]>(kind: K) =>
    round.filter((message): message is Message & { kind: K } => message.kind === kind);
  return [
    { vectors: of("computedMean").map(({ owner, n, result = n }) => ({ owner, n, k: result })), only: undefined },
    { vectors: of("meanAtOwner").map(({ owner, n }) => ({ owner, n, k: 0 })), only: "up" as const },
    { vectors: of("fromOwner").map(({ owner, n }) => ({ owner, n: 0, k: n })), only: "down" as const },
  ].filter(({ vectors }) => vectors.length > 0);
}

/** The elements of each vote: votes with one outcome are one, in which each begins at a word. */
export function joinedVotes(round: readonly Message[]): Map<Outcome, number> {
  const votes = Map.groupBy(
    round.filter((message) => message.kind === "vote"),
    ({ outcome }) => outcome,
  );
  const elementsOf = (together: readonly Message[]) =>
    together.length === 1 ? together[0]!.n : together.reduce((sum, { n }) => sum + 64 * wordsOf(n), 0);
  return new Map([...votes].map(([outcome, together]) => [outcome, elementsOf(together)]));
}

/** The lengths of the vectors that are averaged. Neighbours count as one vector. */
export function joinedMeans(round: readonly Message[]): number[] {
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
