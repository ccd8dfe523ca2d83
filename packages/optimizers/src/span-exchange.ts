/**
 * The exchange as one span's step sees it. It counts the awaits: the result of the last one is held until all ranks agree that the
 * step is good, the others are handed out as soon as they have come.
 */
import type { Caller, StepExchange } from "@terse/exchange";
import type { OptimizerExchange, StepMessage } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";
import { type GradientNorms, isUsable, normOf } from "./clipping.ts";

/** An algorithm's step has made other requests than its `messages` say: a fault of the algorithm. */
export class MessagesError extends Error {
  override name = "MessagesError";
}

/** Which mean gradients wait for those of all buckets, because their common norm clips them. */
export interface HeldMeans {
  readonly everywhere: boolean;
  /** Those that owners alone have, for a message in which they tell all ranks the norms. */
  readonly atOwners: boolean;
}

export class SpanExchange implements Caller {
  readonly #name: string;
  readonly #messages: readonly StepMessage[];
  readonly #heldMeans: HeldMeans;
  #awaits = 0; // so far
  #pending = 0; // requests without a result

  constructor(name: string, messages: readonly StepMessage[], heldMeans: HeldMeans) {
    this.#name = name;
    this.#messages = messages;
    this.#heldMeans = heldMeans;
  }

  requested(): { held: boolean; early: boolean } {
    if (this.#pending === 0) this.#awaits++;
    this.#pending++;
    const message = this.#messages[this.#awaits - 1];
    if (!message)
      throw new MessagesError(
        `${this.#name}: its messages say ${this.#messages.length} for this step, and the step asks for one more`,
      );
    const isLast = this.#awaits === this.#messages.length;
    // What a compressed mean is made of is handed out before all others: its norm is known only then.
    if (isLast) return { held: true, early: isOfMean(message) };
    return { held: waits(this.#messages, this.#awaits - 1, this.#heldMeans), early: true };
  }

  answered(): void {
    this.#pending--;
  }

  /** After the step. */
  check(): void {
    if (this.#awaits < this.#messages.length)
      throw new MessagesError(
        `${this.#name}: its messages say ${this.#messages.length} for this step, and the step asked for ${this.#awaits}`,
      );
  }

  /** `arrived`: all messages of the step have come. */
  over(
    exchange: StepExchange,
    bucket: Bucket,
    { norms, arrived }: { norms: GradientNorms; arrived: Promise<void> },
  ): OptimizerExchange {
    const requests = exchange.requests(this);
    return {
      ...requests,
      mean: (x) => requests.mean(x, { accept: () => isUsable(normOf([x])) }),
      async meanGradient(g) {
        await requests.mean(g, { accept: () => norms.acceptMean(bucket, g) });
        return norms.factorOfMean(bucket);
      },
      async meanGradientAtOwner(g, { owner }) {
        await requests.meanAtOwner(g, { owner, arrived: () => norms.acceptAtOwner(bucket, g) });
        return norms.factorAtOwner(bucket);
      },
      factorOf: async (g) => {
        const factor = await norms.factorOfCompressed(bucket, g);
        if (this.#awaits === this.#messages.length) await arrived;
        return factor;
      },
    };
  }
}

/** Whether the result of a message that is not the last one waits until all ranks know the mean gradients of the step, whose norm clips them. */
function waits(messages: readonly StepMessage[], i: number, held: HeldMeans): boolean {
  const [message, next] = [messages[i]!, messages[i + 1]!];
  if (message.kind === "meanGradient") return held.everywhere;
  if (message.kind === "meanGradientAtOwner") return held.atOwners;
  return isOfMean(message) && !isOfMean(next);
}

/** The awaits of a step up to its mean gradient, and those that follow from it once all ranks know it. */
export function awaitsOf(messages: readonly StepMessage[], held: HeldMeans): { first: number; later: number } {
  const count = messages.length;
  const last = messages.findIndex((_, i) => i + 1 < count && waits(messages, i, held)); // of the first ones
  return last < 0 ? { first: count, later: 0 } : { first: last + 1, later: count - last - 1 };
}

const isOfMean = (message: StepMessage) => "n" in message && message.ofMean === true;
