/** What a step sends: by closed form beforehand, and by the groups' counters afterwards. */
import type { Group, Sent } from "@terse/collectives";
import { bytesOfRound, type ChosenSchemes, type Message } from "@terse/exchange";
import type { StepMessage, Vector } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";
import { type ClipsMeans, roundCounts } from "./rounds.ts";

interface Sender {
  readonly rank: number;
  readonly ranks: number;
  readonly schemes: ChosenSchemes;
  readonly clipping: ClipsMeans;
}

/** The requests of a bucket in a step, by round: those that its spans make at the same time travel together. */
export interface Rounds {
  readonly rounds: readonly (readonly Message[])[];
  /** How many of the last ones follow from the mean gradients of all buckets, which are known after backward. */
  readonly later: number;
}

export function roundsOfBucket({ spans }: Bucket, step: number, clipping: ClipsMeans): Rounds {
  const bySpan = spans.map(({ algorithm, vector, state }) => {
    const messages = algorithm.messages(vector, step, state);
    const { first } = roundCounts(messages, clipping);
    const all = messages.map((message) => inArena(message, vector));
    return [all.slice(0, first), all.slice(first)] as const;
  });
  const first = together(bySpan.map(([messages]) => messages));
  const later = together(bySpan.map(([, messages]) => messages));
  return { rounds: [...first, ...later], later: later.length };
}

/** The messages of several spans by round. */
function together(bySpan: readonly (readonly Message[])[]): Message[][] {
  const rounds = Math.max(...bySpan.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) => bySpan.flatMap((messages) => messages[round] ?? []));
}

/** Payload bytes that one rank sends for the messages of a bucket. */
export function bytesOfBucket(bucket: Bucket, step: number, { rank, ranks, schemes, clipping }: Sender): number {
  const { rounds } = roundsOfBucket(bucket, step, clipping);
  return rounds.reduce((sum, round) => sum + bytesOfRound(round, ranks, rank, schemes), 0);
}

/** A mean of gradients lies in the arena, where neighbours travel as one vector. */
function inArena(message: StepMessage, { n, offset, owner }: Vector): Message {
  if ("n" in message) return message;
  return message.kind === "meanGradient" ? { kind: "mean", n, offset } : { kind: "meanAtOwner", n, owner };
}

/** Everything that groups have sent until now: payload and headers, in bytes, and messages. */
export function sentOver(counters: readonly Sent[]): { bytes: number; messages: number } {
  return {
    bytes: counters.reduce((sum, { bytes, headerBytes }) => sum + bytes + headerBytes, 0),
    messages: counters.reduce((sum, { messages }) => sum + messages, 0),
  };
}

export const sentBy = (groups: readonly Group[]): Sent[] => groups.map((group) => group.sent());
