/** How long a step would take, by the closed forms of its messages. */
import { bytesOfRound, type Measured, predictRound, returningShare } from "@terse/exchange";
import type { TrainingOptimizer } from "@terse/optimizers";
import type { Recipe } from "../recipe.ts";

/** Seconds of a step, predicted. */
export interface StepTime {
  readonly computing: number; // forward and backward
  readonly messages: number; // all of them, one after the other
  readonly exposed: number; // of them, after backward has ended
}

export function timeOf(
  step: { readonly step: number; readonly bytes: number },
  optimizer: TrainingOptimizer,
  recipe: Recipe,
  {
    ranks,
    measured,
    computing,
    backward = (2 / 3) * computing, // forward takes the other third
  }: { ranks: number; measured: Measured; computing: number; backward?: number },
): StepTime {
  if (recipe.local) return timeOfRound(step, optimizer, recipe.local, { ranks, measured, computing });
  const hiding = hidingSeconds(optimizer, recipe, backward);
  return { computing, ...timeOfMessages(optimizer, step, { ranks, measured, backward: hiding }) };
}

/**
 * A step that uses a round waits for what `delay` steps have not hidden. Other steps send nothing, or within a host,
 * whose network is not the link of the prediction.
 */
function timeOfRound(
  { step }: { readonly step: number },
  optimizer: TrainingOptimizer,
  { delay, ranksPerHost = 1 }: NonNullable<Recipe["local"]>,
  { ranks, measured, computing }: { ranks: number; measured: Measured; computing: number },
): StepTime {
  if (optimizer.requests(step).length === 0) return { computing, messages: 0, exposed: 0 };
  const between = { ranks: Math.ceil(ranks / ranksPerHost), measured, backward: 0 };
  const { messages, exposed } = timeOfMessages(optimizer, { step, bytes: 0 }, between);
  return { computing, messages, exposed: Math.max(0, exposed - delay * computing) };
}

/**
 * The seconds of a step's backward in which messages leave: those of the last micro-batch, if its method sends any
 * meanwhile.
 */
function hidingSeconds(optimizer: TrainingOptimizer, { overlap, accumulate }: Recipe, backward: number): number {
  return overlap === "off" || optimizer.obstacle !== undefined ? 0 : backward / accumulate;
}

/**
 * Buckets leave one after the other, as the last micro-batch's backward completes them in `backward` seconds (0: they
 * wait for its end). The wire takes them one by one (packages/exchange/src/cost-model/bucket.ts), but a server's
 * answers go beside the next votes. Messages that depend on mean gradients, or belong to no bucket, come at the end.
 * `bytes`: all that rank 0 sends in the step.
 */
function timeOfMessages(
  optimizer: TrainingOptimizer,
  { step: from, bytes }: { step: number; bytes: number },
  { ranks, measured, backward }: { ranks: number; measured: Measured; backward: number },
): Omit<StepTime, "computing"> {
  const all = optimizer.requests(from);
  const whole = all.reduce((sum, { elements }) => sum + elements, 0);
  // Up, down: when these directions of the wire are free
  let [complete, up, down, messages, after, left] = [0, 0, 0, 0, 0, bytes];
  for (const { elements, rounds, afterMeans } of all) {
    complete += elements;
    const seconds = rounds.map((round) => predictRound(round, ranks, optimizer.schemes, measured));
    const first = sum(seconds.slice(0, rounds.length - afterMeans));
    left -= sum(rounds.map((round) => bytesOfRound(round, ranks, 0, optimizer.schemes)));
    messages += sum(seconds);
    after += sum(seconds) - first;
    const returns = rounds.length === 1 ? first * returningShare(rounds[0]!, ranks, optimizer.schemes) : 0;
    const ready = Math.max(up, backward * (complete / whole), returns > 0 ? 0 : down);
    up = ready + first - returns;
    down = returns > 0 ? Math.max(up, down) + returns : up;
  }
  let end = Math.max(up, down) + after;
  const { alpha, beta } = measured.link;
  const beside = left > 0 ? alpha + left * beta : 0; // norms, and momenta that are averaged
  messages += beside;
  end += beside;
  return { messages, exposed: end - backward };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
