/**
 * The warm-up of 1-bit Adam and 1-bit LAMB, whose length is given or found.
 *
 *   auto    it ends where t is a multiple of Δ = 1/(1 − β₂) and ‖v̂_t‖ / ‖v̂_{t − Δ}‖ is from 0.96 to 1/0.96: after 2 Δ
 *           steps at the earliest. t: steps taken; v̂_t = v_t / (1 − β₂ᵗ), because v begins at 0. The norms are a
 *           layer's, or with one scale the model's
 *
 * The authors say what to look at: "when we detect that the change in variance falls below a certain threshold, we
 * switch to the compression stage" (https://www.deepspeed.ai/2020/09/08/onebit-adam-blog-post.html). The numbers of
 * `auto`, Δ, 0.96 and the 2-norm, are ours: Δ is as far as v remembers. DeepSpeed takes a length, and advises 15 to 25
 * % of the run: 23,000 steps for BERT-Large, 16,000 for BERT-Base, of sequences of 128
 * (https://www.deepspeed.ai/tutorials/onebit-adam). Li et al. 2021 take 4,000 of 28,125 steps, 14 %, with batches of
 * 16K.
 *
 * Every step of a warm-up is a step. The first one of DeepSpeed only makes its buffers and drops its gradient, so with
 * a freeze_step of N there are N − 1 updates before the compression, and N with `warmup: N` here.
 */
import { sumOfSquares } from "@terse/native-optimizers";
import { fraction, oneOf, positiveInteger, v } from "@terse/options";
import type { Tensor } from "@terse/tensor";
import type { InRun } from "../define.ts";
import type { OptionsChange } from "../kept-options.ts";
import { SavedStateError } from "../saved-state.ts";

/** The option: a number of steps, a fraction of the run, which `warmupInRun` turns into steps, or auto. */
export const warmup = v.optional(v.union([positiveInteger, fraction, oneOf(["auto"])]), "auto");

/**
 * The option in a run of `steps`: a fraction becomes steps. A plan assumes that `auto` ends after a fifth of the run,
 * or as early as it can if that is later.
 */
export function warmupInRun(
  { warmup, beta2 }: { readonly warmup: number | "auto"; readonly beta2: number },
  steps: number,
): InRun<{ warmup: number | "auto" }> {
  const path = "warmup";
  if (warmup === "auto") {
    const every = lookout(beta2);
    const earliest = 2 * every;
    const assumed = Math.max(earliest, every * Math.ceil(steps / 5 / every));
    if (assumed < steps) {
      const problem = `is auto: it ends when the variance is stable, here after ${assumed} steps`;
      return { assumed: { options: { warmup: assumed }, remark: { path, problem } } };
    }
    const problem = `auto ends after ${earliest} steps at the earliest, and the run has ${steps}, so nothing is compressed`;
    const remedy = "give a number of steps, or a share of the run such as 0.2";
    return {
      assumed: { options: { warmup: steps } },
      ...(earliest >= steps && { remarks: [{ path, problem, remedy }] }),
    };
  }
  const length = warmup >= 1 ? warmup : Math.max(1, Math.round(warmup * steps));
  if (length < steps || steps === 1) return { options: { warmup: length } };
  const problem = `${length} steps of warm-up, and the run has ${steps}, so nothing would be compressed`;
  return {
    options: { warmup: length },
    problems: [{ path, problem, remedy: "take a shorter warm-up, or more steps" }],
  };
}

/** How far the warm-up of a vector is. */
export type Warmup = {
  /** The first step of the compression; −1 as long as it is not known. */
  compressesFrom: number;
  /** ‖v̂‖ when it was last measured; 0 before that. */
  varianceNorm: number;
};

const stable = 0.96; // ratio of two norms

/** Steps after which `auto` looks at the variance. */
const lookout = (beta2: number): number => Math.round(1 / (1 - beta2)); // Δ

export const fractionOfRun = {
  option: "warmup",
  when: ({ warmup }: { warmup: number | "auto" }) => warmup !== "auto" && warmup < 1,
  because: ({ warmup }: { warmup: number | "auto" }) =>
    `${warmup} is a fraction of the run, whose length an optimizer does not know`,
  remedy: "give steps",
} as const;

export function startWarmup(length: number | "auto"): Warmup {
  return { compressesFrom: length === "auto" ? -1 : length, varianceNorm: 0 };
}

/**
 * The warm-up of a save after `step` steps, with the length that the optimizer has now. SavedStateError where the
 * warm-up has ended at another step, or that length is over.
 */
export function resumedWarmup(where: string, saved: Warmup, length: number | "auto", step: number): Warmup {
  if (length === "auto") return warmsUp(saved, step) ? { ...saved, compressesFrom: -1 } : saved;
  const { compressesFrom } = saved;
  if (!warmsUp(saved, step) && length !== compressesFrom)
    throw new SavedStateError(
      `${where}.warmup: ${length}, and the warm-up of this save has ended after ${compressesFrom} steps; take the warmup of the save`,
    );
  if (warmsUp(saved, step) && length <= step)
    throw new SavedStateError(
      `${where}.warmup: ${length}, and this save has taken ${step} steps of warm-up; take ${step + 1} or more`,
    );
  return { ...saved, compressesFrom: length };
}

/**
 * A run keeps its length, and the options that count in it alone. A warm-up that ends by itself may be over, which only
 * its numbers tell (`resumedWarmup`).
 */
export function keptAfterWarmup<Option extends string>(
  { before, after, step }: OptionsChange<{ readonly warmup: number | "auto" }>,
  options: readonly Option[],
): Partial<Record<Option | "warmup", string>> {
  const [length, next] = [before.warmup, after.warmup];
  const isOver = length !== "auto" && length <= step;
  const why: Partial<Record<string, string>> = {};
  if (isOver) why["warmup"] = "the warm-up is over";
  else if (next !== "auto" && next <= step)
    why["warmup"] = `${step} steps of it have been taken, so ${step + 1} is the least`;
  if (isOver || length === "auto")
    for (const option of options) why[option] = `it counts in the warm-up, which ${isOver ? "is" : "may be"} over`;
  return why as Partial<Record<Option | "warmup", string>>;
}

/** The number of a step behind every warm-up, also behind one that ends by itself. */
export const afterWarmups = Number.MAX_SAFE_INTEGER;

export const warmsUp = ({ compressesFrom }: Warmup, step: number): boolean =>
  step < (compressesFrom < 0 ? afterWarmups : compressesFrom);

/** Called after a step of a warm-up whose length is not given: ends it where the variance is stable. */
export function watchVariance(variance: Tensor, scalars: Warmup, step: number, beta2: number): void {
  const taken = step + 1;
  if (scalars.compressesFrom >= 0 || taken % lookout(beta2) !== 0) return;
  const norm = Math.sqrt(sumOfSquares(variance)) / (1 - beta2 ** taken);
  const ratio = norm / scalars.varianceNorm;
  if (ratio >= stable && ratio <= 1 / stable) scalars.compressesFrom = taken;
  scalars.varianceNorm = norm;
}
