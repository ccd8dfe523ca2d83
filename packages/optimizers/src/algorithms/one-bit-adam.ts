/**
 * 1-bit Adam: Adam until its second moment is stable; from then on that is frozen, and ranks average their first moment with one bit.
 * Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888
 *
 *   warm-up        g ← mean_ranks(g),  m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
 *   compression    m ← error-compensated mean over ranks of β₁ m + (1 − β₁) g, g the rank's own; v stays    (compensated-momentum.ts)
 *   both           θ ← θ − η (m / (√v + ε) + λ θ)
 *
 * No bias correction, as in the paper and in DeepSpeed. The paper warms up for 15 to 25 % of a run. With `warmup: auto` the warm-up of a
 * bucket ends when its variance has changed by less than 4 % within 1/(1 − β₂) steps, after the paper's rule (its 1-norm is a 2-norm here).
 *
 * Shapes: θ, g, m, v (n), the worker's error (n), the server's error (about n/P)
 * Sent per step: 1 message of 2 (P − 1)/P · 4 n bytes in warm-up, then of 2 (P − 1)/P · n/8 bytes and the scales.
 */
import { accumulateMoments, applyAdamUpdate, sumOfSquares } from "@terse/native-optimizers";
import {
  nonNegativeFloat,
  oneOf,
  parseOptions,
  positiveFloat,
  positiveInteger,
  unitIntervalFloat,
  v,
} from "@terse/options";
import { noGrad, type Tensor, zerosLike } from "@terse/tensor";
import type { Algorithm } from "./algorithm.ts";
import { CompensatedMomentum, type CompensationState, scales } from "./compensated-momentum.ts";

export const oneBitAdamOptions = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  eps: v.optional(positiveFloat, 1e-8), // ε
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  warmup: v.optional(v.union([positiveInteger, oneOf(["auto"])]), "auto"), // steps before the compression
  scale: v.optional(scales, "per-layer"), // what shares one magnitude; fused in the paper
});

export interface OneBitAdamState extends CompensationState {
  readonly elements: {
    m: Tensor; // first moment, the same on every rank
    v: Tensor; // second moment, the same on every rank, frozen after the warm-up
    workerError: Tensor; // what this rank has not sent yet
  };
  readonly scalars: CompensationState["scalars"] & Warmup;
}

/** How far the warm-up of a vector is. */
export type Warmup = {
  /** The first step of the compression; −1 as long as it is not known. */
  compressesFrom: number;
  /** ‖v‖ when it was last measured; 0 before that. */
  varianceNorm: number;
};

const stable = 0.96;

export function oneBitAdam(options: v.InferInput<typeof oneBitAdamOptions> = {}): Algorithm<OneBitAdamState> {
  const { beta1, beta2, eps, weightDecay, warmup, scale } = parseOptions(oneBitAdamOptions, options, "one-bit-adam");
  const momentum = new CompensatedMomentum(scale, beta1);
  return {
    name: "one-bit-adam",
    splits: momentum.splits,

    init(θ, vector) {
      const { elements, owned, scalars } = momentum.init(θ, vector);
      return { elements: { ...elements, v: zerosLike(θ) }, owned, scalars: { ...scalars, ...startWarmup(warmup) } };
    },

    async step(θ, g, state, exchange, context) {
      const { m, v } = state.elements;
      const { scalars } = state;
      if (warmsUp(scalars, context.step)) {
        const gradientScale = await exchange.meanGradient(g);
        accumulateMoments(m, v, g, { beta1, beta2, gradientScale });
        watchVariance(v, scalars, context.step, beta2);
        if (context.step + 1 === scalars.compressesFrom) momentum.chooseFactors(state, context.vector);
      } else {
        using mean = await momentum.average(g, state, exchange, context);
        noGrad(() => m.copy_(mean));
      }
      applyAdamUpdate(θ, m, v, { first: 1, second: 1, eps, weightDecay, rate: context.lr });
    },

    messages: (vector, step, { scalars }) => [
      warmsUp(scalars, step) ? { kind: "meanGradient" } : momentum.message(vector),
    ],
  };
}

export const startWarmup = (warmup: number | "auto"): Warmup => ({
  compressesFrom: warmup === "auto" ? -1 : warmup,
  varianceNorm: 0,
});

export const warmsUp = ({ compressesFrom }: Warmup, step: number): boolean =>
  compressesFrom < 0 || step < compressesFrom;

/** Ends a warm-up of unknown length when ‖v‖ has been nearly the same for 1/(1 − β₂) steps. */
export function watchVariance(v: Tensor, scalars: Warmup, step: number, beta2: number): void {
  if (scalars.compressesFrom >= 0 || (step + 1) % Math.round(1 / (1 - beta2)) !== 0) return;
  const norm = Math.sqrt(sumOfSquares(v));
  const ratio = norm / scalars.varianceNorm;
  if (ratio >= stable && ratio <= 1 / stable) scalars.compressesFrom = step + 1;
  scalars.varianceNorm = norm;
}
