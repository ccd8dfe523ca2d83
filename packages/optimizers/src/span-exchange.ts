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

export class SpanExchange implements Caller {
  readonly #name: string;
  readonly #messages: readonly StepMessage[];
  readonly #holdsGradients: boolean;
  #awaits = 0; // so far
  #pending = 0; // requests without a result

  /** `holdsGradients`: mean gradients wait for those of all buckets, because their common norm clips them. */
  constructor(name: string, messages: readonly StepMessage[], holdsGradients: boolean) {
    this.#name = name;
    this.#messages = messages;
    this.#holdsGradients = holdsGradients;
  }

  requested(): { held: boolean } {
    if (this.#pending === 0) this.#awaits++;
    this.#pending++;
    const message = this.#messages[this.#awaits - 1];
    if (!message)
      throw new MessagesError(
        `${this.#name}: its messages say ${this.#messages.length} for this step, and the step asks for one more`,
      );
    const next = this.#messages[this.#awaits];
    if (!next) return { held: true };
    if (message.kind === "meanGradient") return { held: this.#holdsGradients };
    return { held: message.ofMean === true && !isOfMean(next) }; // all ranks look at the norm of a compressed mean before they use it
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

  over(exchange: StepExchange, bucket: Bucket, norms: GradientNorms): OptimizerExchange {
    const requests = exchange.requests(this);
    return {
      ...requests,
      mean: (x) => requests.mean(x, { accept: () => isUsable(normOf([x])) }),
      async meanGradient(g) {
        await requests.mean(g, { accept: () => norms.acceptMean(bucket, g) });
        return norms.meanFactor(bucket);
      },
      factorOf: (g) => norms.factorOfCompressed(bucket, g),
    };
  }
}

const isOfMean = (message: StepMessage) => message.kind !== "meanGradient" && message.ofMean === true;
