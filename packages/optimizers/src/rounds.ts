/**
 * The messages of a step by round: those that the spans of a bucket ask for at the same time travel together. First
 * rounds need only the gradients of their bucket. Later ones depend on mean gradients that all ranks must know first:
 * their common norm clips them, or compressed ones must be known to be finite.
 */
import type { Message } from "@terse/exchange";
import type { StepMessage, Vector } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";
import type { Clipping } from "./clipping/clipping.ts";
import type { Span } from "./parameter-groups.ts";

/** The requests of a bucket in a step, by round. */
export interface Rounds {
  readonly rounds: readonly (readonly Message[])[];
  /** How many of the last rounds depend on the mean gradients of all buckets, which are known after backward. */
  readonly afterMeans: number;
}

export function roundsOf({ spans }: Bucket, step: number, clipping: Clipping): Rounds {
  const bySpan = spans.map((span) => {
    const messages = messagesOf(span, step);
    const first = firstOnes(messages, clipping);
    const all = messages.map((message) => inArena(message, span.vector));
    return [all.slice(0, first), all.slice(first)] as const;
  });
  const first = byRound(bySpan.map(([messages]) => messages));
  const afterMeans = byRound(bySpan.map(([, messages]) => messages));
  return { rounds: [...first, ...afterMeans], afterMeans: afterMeans.length };
}

export const messagesOf = ({ algorithm, vector, state }: Span, step: number): readonly StepMessage[] =>
  algorithm.messages(vector, step, state);

/** How many messages of a span come before it waits for the mean gradients of all buckets. */
function firstOnes(messages: readonly StepMessage[], { limit, meansNeedAll }: Clipping): number {
  const isLast = (message: StepMessage, next: StepMessage) => {
    if (message.kind === "meanGradient") return meansNeedAll;
    if (message.kind === "meanGradientAtOwner") return limit > 0;
    return isOfMean(message) && !isOfMean(next);
  };
  const last = messages.findIndex((message, i) => i + 1 < messages.length && isLast(message, messages[i + 1]!));
  return last < 0 ? messages.length : last + 1;
}

const isOfMean = (message: StepMessage) => "n" in message && message.ofMean === true;

/** A mean of gradients lies in the arena, where neighbours travel as one vector. */
function inArena(message: StepMessage, { n, offset, owner }: Vector): Message {
  if ("n" in message) return message;
  return message.kind === "meanGradient" ? { kind: "mean", n, offset } : { kind: "meanAtOwner", n, owner };
}

/** The messages of several spans by round. */
function byRound(bySpan: readonly (readonly Message[])[]): Message[][] {
  const rounds = Math.max(...bySpan.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) => bySpan.flatMap((messages) => messages[round] ?? []));
}

/**
 * The gradient that a span's step works on: the rank's own, or the mean over the ranks. A mean comes whole to every
 * rank, or compressed, or whole to its owner alone.
 */
export function gradientOf(span: Span, step: number): "own" | "mean" | "compressed mean" | "mean at its owner" {
  const messages = messagesOf(span, step);
  if (messages.some(isOfMean)) return "compressed mean";
  if (messages.some(({ kind }) => kind === "meanGradientAtOwner")) return "mean at its owner";
  return messages.some(({ kind }) => kind === "meanGradient") ? "mean" : "own";
}

export const worksOnOwn = (spans: readonly Span[], step: number): boolean =>
  spans.some((span) => gradientOf(span, step) === "own");

export const averagesAtOwner = ({ spans }: Bucket, step: number): boolean =>
  spans.some((span) => gradientOf(span, step) === "mean at its owner");
