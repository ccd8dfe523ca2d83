/** What a step sends: by closed form beforehand, and by the groups' counters afterwards. */
import { allReduceBytes, type Sent, type Volume } from "@terse/collectives";
import { bytesOfRound, type ChosenSchemes } from "@terse/exchange";
import type { Bucket } from "./buckets.ts";
import type { Clipping } from "./clipping/clipping.ts";
import { averagesAtOwner, roundsOf, worksOnOwn } from "./rounds.ts";

/** Who sends what: the buckets of a step, in the order in which they leave. */
export interface Sending {
  readonly buckets: readonly Bucket[];
  readonly ranks: number;
  readonly schemes: ChosenSchemes;
  readonly clipping: Clipping;
}

/** Payload bytes that one rank sends for the messages of a bucket. */
export function bytesOfBucket(
  bucket: Bucket,
  step: number,
  rank: number,
  { ranks, schemes, clipping }: Sending,
): number {
  const { rounds } = roundsOf(bucket, step, clipping);
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
  const owned = buckets.filter((bucket) => averagesAtOwner(bucket, step)).length;
  return clipping.limit === 0 || owned === 0 ? nothing : allReduceBytes(owned, 8, ranks, rank);
}

const nothing: Volume = { bytes: 0, messages: 0 };

/** Payload bytes that one rank sends in a step, but for momenta that are synchronised. */
export function bytesOfStep(step: number, rank: number, sending: Sending): number {
  const ofBuckets = sending.buckets.map((bucket) => bytesOfBucket(bucket, step, rank, sending));
  const ofNorms = [agreementOnNorms, normsOfOwners].map((message) => message(step, rank, sending).bytes);
  return [...ofBuckets, ...ofNorms].reduce((sum, bytes) => sum + bytes, 0);
}

/** All bytes (payload and headers) and messages that groups have sent until now. */
export function sentOver(counters: readonly Sent[]): { bytes: number; messages: number } {
  return {
    bytes: counters.reduce((sum, { bytes, headerBytes }) => sum + bytes + headerBytes, 0),
    messages: counters.reduce((sum, { messages }) => sum + messages, 0),
  };
}
