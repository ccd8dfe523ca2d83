/** What a step sends: by closed form beforehand, and by the groups' counters afterwards. */
import { allReduceBytes, type Group, type Sent, type Volume } from "@terse/collectives";
import { bytesOfRound, type ChosenSchemes, type Message } from "@terse/exchange";
import { averagesAtOwner, averagesGradients, type StepMessage, type Vector } from "./algorithms/algorithm.ts";
import type { Bucket } from "./bucket.ts";
import type { Clipping } from "./clipping/clipping.ts";
import type { Span } from "./parameter-groups.ts";
import { type ClipsMeans, roundCounts } from "./rounds.ts";

/** Who sends what: the buckets of a step, in the order in which they leave. */
export interface Sending {
  readonly buckets: readonly Bucket[];
  readonly ranks: number;
  readonly schemes: ChosenSchemes;
  readonly clipping: Clipping;
}

/** The requests of a bucket in a step, by round: those that its spans make at the same time travel together. */
export interface Rounds {
  readonly rounds: readonly (readonly Message[])[];
  /** How many of the last rounds depend on the mean gradients of all buckets, which are known after backward. */
  readonly afterMeans: number;
}

export function roundsOfBucket({ spans }: Bucket, step: number, clipping: ClipsMeans): Rounds {
  const bySpan = spans.map(({ algorithm, vector, state }) => {
    const messages = algorithm.messages(vector, step, state);
    const { first } = roundCounts(messages, clipping);
    const all = messages.map((message) => inArena(message, vector));
    return [all.slice(0, first), all.slice(first)] as const;
  });
  const first = byRound(bySpan.map(([messages]) => messages));
  const afterMeans = byRound(bySpan.map(([, messages]) => messages));
  return { rounds: [...first, ...afterMeans], afterMeans: afterMeans.length };
}

/** The messages of several spans by round. */
function byRound(bySpan: readonly (readonly Message[])[]): Message[][] {
  const rounds = Math.max(...bySpan.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) => bySpan.flatMap((messages) => messages[round] ?? []));
}

/** Payload bytes that one rank sends for the messages of a bucket. */
export function bytesOfBucket(
  bucket: Bucket,
  step: number,
  rank: number,
  { ranks, schemes, clipping }: Sending,
): number {
  const { rounds } = roundsOfBucket(bucket, step, clipping);
  return rounds.reduce((sum, round) => sum + bytesOfRound(round, ranks, rank, schemes), 0);
}

/**
 * The message in which ranks that clip their own gradients agree on the norms of a step. It travels beside the next
 * step.
 */
export function agreementOnNorms(step: number, rank: number, { buckets, ranks, clipping }: Sending): Volume {
  if (!clipping.usesPrevious || !buckets.some(({ spans }) => worksOnOwn(spans, step))) return nothing;
  return allReduceBytes(buckets.length, 8, ranks, rank);
}

/** The message in which the owners of mean gradients tell all ranks the norms of a step. */
function normsOfOwners(step: number, rank: number, { buckets, ranks, clipping }: Sending): Volume {
  const isOwned = ({ algorithm, vector, state }: Span) => averagesAtOwner(algorithm.messages(vector, step, state));
  const owned = buckets.filter(({ spans }) => spans.some(isOwned)).length;
  return clipping.limit === 0 || owned === 0 ? nothing : allReduceBytes(owned, 8, ranks, rank);
}

const nothing: Volume = { bytes: 0, messages: 0 };

/** Payload bytes that one rank sends in a step, but for momenta that are synchronised. */
export function bytesOfStep(step: number, rank: number, sending: Sending): number {
  const ofBuckets = sending.buckets.map((bucket) => bytesOfBucket(bucket, step, rank, sending));
  const ofNorms = [agreementOnNorms, normsOfOwners].map((message) => message(step, rank, sending).bytes);
  return [...ofBuckets, ...ofNorms].reduce((sum, bytes) => sum + bytes, 0);
}

/** Whether a step uses a rank's own gradient. */
export const worksOnOwn = (spans: readonly Span[], step: number): boolean =>
  spans.some(({ algorithm, vector, state }) => !averagesGradients(algorithm.messages(vector, step, state)));

/** A mean of gradients lies in the arena, where neighbours travel as one vector. */
function inArena(message: StepMessage, { n, offset, owner }: Vector): Message {
  if ("n" in message) return message;
  return message.kind === "meanGradient" ? { kind: "mean", n, offset } : { kind: "meanAtOwner", n, owner };
}

/** All bytes (payload and headers) and messages that groups have sent until now. */
export function sentOver(counters: readonly Sent[]): { bytes: number; messages: number } {
  return {
    bytes: counters.reduce((sum, { bytes, headerBytes }) => sum + bytes + headerBytes, 0),
    messages: counters.reduce((sum, { messages }) => sum + messages, 0),
  };
}

export const sentBy = (groups: readonly Group[]): Sent[] => groups.map((group) => group.sent());
