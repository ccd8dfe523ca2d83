/** One algorithm at work on one span: what it sees of the exchange, and the two moments that the step waits for. */
import type { StepExchange } from "@terse/exchange";
import type { OptimizerExchange } from "./algorithms/algorithm.ts";
import { acceptNorm, type GradientNorms, normOf } from "./clipping/gradient-norms.ts";
import type { Span } from "./parameter-groups.ts";
import { messagesOf } from "./rounds.ts";

/** An algorithm's step has made other requests than its `messages` say: a fault of the algorithm. */
export class MessagesError extends Error {
  override name = "MessagesError";
}

export interface Surroundings {
  readonly step: number; // t
  readonly lr: number;
  readonly norms: GradientNorms;
  readonly place: number; // of the span's bucket
  readonly exchange: StepExchange;
  readonly gradientScale: number; // clips own gradients
  /** The mean gradients of all buckets are known. */
  readonly means: Promise<void>;
  /** All ranks take the step. */
  readonly agreed: Promise<void>;
}

export interface RunningAlgorithm {
  /** It waits for the agreement: all its messages have come. Or it has failed. */
  readonly waits: Promise<void>;
  /** It has changed θ. */
  readonly applied: Promise<void>;
}

/** Starts the step of a span, which makes its first requests at once. */
export function runAlgorithm(span: Span, around: Surroundings): RunningAlgorithm {
  const { algorithm, lrFactor = 1, vector, θ, g, state } = span;
  const { step, lr, norms, place, exchange, gradientScale, means, agreed } = around;
  const messages = messagesOf(span, step);
  const said = `${algorithm.name}: its messages say ${messages.length} for this step, and the step`;
  const rounds = new Set<number>();
  const requests = exchange.requests((round) => {
    rounds.add(round);
    if (rounds.size > messages.length) throw new MessagesError(`${said} asks for one more`);
  });
  const waits = Promise.withResolvers<void>();
  let asked = false;

  const factorOf = async (needsAll: boolean) => {
    if (needsAll) await means;
    return norms.meanFactor(place);
  };
  const seen: OptimizerExchange = {
    ...requests,
    mean: (x) => requests.mean(x, { accept: () => acceptNorm(normOf([x])) }),
    async meanGradient(g) {
      await requests.mean(g, { accept: () => norms.acceptMean(place, g) });
      return factorOf(norms.clipping.meansNeedAll);
    },
    async meanGradientAtOwner(g, { owner }) {
      await requests.meanAtOwner(g, { owner, arrived: () => norms.acceptAtOwner(place, g) });
      return factorOf(norms.clipping.limit > 0);
    },
    clipFactor(g) {
      norms.acceptCompressed(place, g);
      return factorOf(true);
    },
    async agreed() {
      if (rounds.size < messages.length) throw new MessagesError(`${said} asked for ${rounds.size}`);
      if (messages.length === 0) await exchange.requests().agree();
      asked = true;
      waits.resolve();
      await agreed;
    },
  };

  const applied = (async () => {
    await algorithm.step(θ, g, state, seen, { step, lr: lr * lrFactor, gradientScale, vector });
    if (!asked) throw new MessagesError(`${algorithm.name}: its step ends without \`await exchange.agreed()\``);
  })();
  applied.catch(waits.reject);
  return { waits: waits.promise, applied };
}
