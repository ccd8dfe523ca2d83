/** One algorithm at work on one span: what it sees of the exchange, and the two moments that the step waits for. */
import type { StepExchange } from "@terse/exchange";
import type { OptimizerExchange } from "./algorithms/algorithm.ts";
import type { Bucket } from "./bucket.ts";
import type { Clipping } from "./clipping/clipping.ts";
import { acceptNorm, type GradientNorms, normOf } from "./clipping/gradient-norms.ts";
import type { Span } from "./parameter-groups.ts";
import { type RoundCounts, roundCounts } from "./rounds.ts";

/** An algorithm's step has made other requests than its `messages` say: a fault of the algorithm. */
export class MessagesError extends Error {
  override name = "MessagesError";
}

export interface Surroundings {
  readonly step: number; // t
  readonly lr: number;
  readonly clipping: Clipping;
  readonly norms: GradientNorms;
  readonly bucket: Bucket; // of the span
  readonly exchange: StepExchange;
  readonly gradientScale: number; // clips own gradients
  /** The mean gradients of all buckets are known. */
  readonly means: Promise<void>;
  /** All ranks take the step. */
  readonly agreed: Promise<void>;
}

export interface RunningAlgorithm extends RoundCounts {
  /** It waits for the agreement: all its messages have come. */
  readonly waits: Promise<void>;
  /** It has changed θ. */
  readonly applied: Promise<void>;
}

/** Starts the step of a span, which makes its first requests at once. */
export function runAlgorithm(
  { algorithm, lrFactor = 1, vector, θ, g, state }: Span,
  around: Surroundings,
): RunningAlgorithm {
  const { step, lr, clipping, norms, bucket, exchange, gradientScale, means, agreed } = around;
  const messages = algorithm.messages(vector, step, state);
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
    return norms.meanFactor(bucket);
  };
  const seen: OptimizerExchange = {
    ...requests,
    mean: (x) => requests.mean(x, { accept: () => acceptNorm(normOf([x])) }),
    async meanGradient(g) {
      await requests.mean(g, { accept: () => norms.acceptMean(bucket, g) });
      return factorOf(clipping.meansNeedAll);
    },
    async meanGradientAtOwner(g, { owner }) {
      await requests.meanAtOwner(g, { owner, arrived: () => norms.acceptAtOwner(bucket, g) });
      return factorOf(clipping.limit > 0);
    },
    clipFactor(g) {
      norms.acceptCompressed(bucket, g);
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
  return { ...roundCounts(messages, clipping), waits: waits.promise, applied };
}
