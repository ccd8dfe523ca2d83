/**
 * The rounds of a step. A step's first messages need only gradients of their bucket. Its later ones depend on mean
 * gradients that all ranks must know first: their common norm clips them, or compressed ones must be known to be
 * finite.
 */
import type { StepMessage } from "./algorithms/algorithm.ts";
import type { Clipping } from "./clipping/clipping.ts";

export interface RoundCounts {
  readonly first: number;
  readonly afterMeans: number;
}

/** How many messages of a step come before it waits for the mean gradients of all buckets, and how many after. */
export function roundCounts(messages: readonly StepMessage[], clipping: ClipsMeans): RoundCounts {
  const count = messages.length;
  const last = messages.findIndex((message, i) => i + 1 < count && ends(message, messages[i + 1]!, clipping));
  return last < 0 ? { first: count, afterMeans: 0 } : { first: last + 1, afterMeans: count - last - 1 };
}

export type ClipsMeans = Pick<Clipping, "limit" | "meansNeedAll">;

/** Whether a message is the last of the first ones. */
function ends(message: StepMessage, next: StepMessage, { limit, meansNeedAll }: ClipsMeans): boolean {
  if (message.kind === "meanGradient") return meansNeedAll;
  if (message.kind === "meanGradientAtOwner") return limit > 0;
  return isOfMean(message) && !isOfMean(next);
}

const isOfMean = (message: StepMessage) => "n" in message && message.ofMean === true;
