/** What a step sends: by closed form beforehand, and by the groups' counters afterwards. */
import type { Group, Sent } from "@terse/collectives";
import { bytesOfRound, type ChosenSchemes, type Message } from "@terse/exchange";
import type { StepMessage, Vector } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";

interface Sender {
  readonly rank: number;
  readonly ranks: number;
  readonly schemes: ChosenSchemes;
}

/** The requests of a bucket in a step, by round: those that its spans make at the same time travel together. */
export function roundsOfBucket({ spans }: Bucket, step: number): Message[][] {
  const bySpan = spans.map(({ algorithm, vector, state }) =>
    algorithm.messages(vector, step, state).map((message) => inArena(message, vector)),
  );
  const rounds = Math.max(...bySpan.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) => bySpan.flatMap((messages) => messages[round] ?? []));
}

/** Payload bytes that one rank sends for the messages of a bucket. */
export function bytesOfBucket(bucket: Bucket, step: number, { rank, ranks, schemes }: Sender): number {
  return roundsOfBucket(bucket, step).reduce((sum, round) => sum + bytesOfRound(round, ranks, rank, schemes), 0);
}

/** A mean of gradients lies in the arena, where neighbours travel as one vector. */
function inArena(message: StepMessage, { n, offset }: Vector): Message {
  return message.kind === "meanGradient" ? { kind: "mean", n, offset } : message;
}

/** Everything that groups have sent until now: payload and headers, in bytes, and messages. */
export function sentOver(counters: readonly Sent[]): { bytes: number; messages: number } {
  return {
    bytes: counters.reduce((sum, { bytes, headerBytes }) => sum + bytes + headerBytes, 0),
    messages: counters.reduce((sum, { messages }) => sum + messages, 0),
  };
}

export const sentBy = (groups: readonly Group[]): Sent[] => groups.map((group) => group.sent());
