/**
 * 1-bit Adam: Adam until its second moment is stable; from then on that is frozen, and ranks average their first moment
 * with one bit. Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888
 *
 *   warm-up        g ← mean_ranks(g),  m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
 *   compression    m ← error-compensated mean over ranks of β₁ m + (1 − β₁) g    (compensated-momentum.ts)
 *                  g is the rank's own, and v stays
 *   both           θ ← θ − η (m / (√v + ε) + λ θ)
 *
 * No bias correction, as in the paper and in DeepSpeed. warmup.ts says when the warm-up ends. An element that has had
 * no gradient in it has v = 0: one bit would give it the magnitude of the others, divided by ε. Such elements are not
 * sent, and only decay from then on.
 *
 * Shapes: θ, g, m, v (n), the worker's error (n), the server's error (about n/P)
 * Sent per step: 1 message of 2 (P − 1)/P · 4 n bytes in warm-up, then of 2 (P − 1)/P · n/8 bytes and the scales.
 */
import { accumulateMoments, applyAdamUpdate } from "@terse/native-optimizers";
import { nonNegativeFloat, positiveFloat, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { Rules } from "./algorithm.ts";
import { CompensatedMomentum, type CompensationState, compensatedMessage, scales } from "./compensated-momentum.ts";
import { memoryOf, slices } from "./kernels.ts";
import {
  fractionOfRun,
  keptAfterWarmup,
  resumedWarmup,
  startWarmup,
  type Warmup,
  warmsUp,
  warmup,
  warmupInRun,
  watchVariance,
} from "./warmup.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  eps: v.optional(positiveFloat, 1e-8), // ε
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  warmup, // before the compression
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

/** 1-bit Adam: Adam in the warm-up, then momenta that are averaged with one bit. Tang et al. 2021, Algorithm 1. */
export const oneBitAdam = define({
  name: "one-bit-adam",
  options,
  kept: (change) => ({ scale: makesState, ...keptAfterWarmup(change, ["beta2"]) }),
  conflicts: [fractionOfRun],
  inRun: warmupInRun,
  alone: { is: "adamw" },
  afterWarmup: { warmup: 1 },

  create({ beta1, beta2, eps, weightDecay, warmup, scale }, where): Rules<OneBitAdamState> {
    const momentum = new CompensatedMomentum(scale, beta1);
    return {
      splits: momentum.splits,
      perLayer: `${where}.scale: per-layer`,

      init(θ, vector) {
        const { elements, scalars, ...errors } = momentum.init(θ, vector);
        return {
          ...errors,
          elements: { ...elements, v: zerosLike(θ) },
          scalars: { ...scalars, ...startWarmup(warmup) },
        };
      },

      async step(θ, g, state, exchange, context) {
        const { m, v } = state.elements;
        const { scalars } = state;
        const u = { first: 1, second: 1, eps, weightDecay, rate: context.lr };
        if (warmsUp(scalars, context.step)) {
          const gradientScale = await exchange.meanGradient(g);
          await exchange.agreed();
          accumulateMoments(m, v, g, { beta1, beta2, gradientScale });
          watchVariance(v, scalars, context.step, beta2);
          if (context.step + 1 === scalars.compressesFrom) momentum.chooseFactors(state, context.vector);
          applyAdamUpdate(θ, m, v, u);
          return;
        }
        using own = momentum.ofRank(g, state, v, context);
        const wires = await exchange.meanOfWires(own);
        await exchange.agreed();
        using mean = momentum.ofWires(wires, state, v, context.vector);
        for (const { begin, end, packed } of mean.parts) {
          const [ofθ, ofM, ofV] = slices([memoryOf(θ), memoryOf(m), memoryOf(v)], begin, end);
          applyAdamUpdate(ofθ, ofM, ofV, u, packed);
        }
      },

      messages: (vector, step, { scalars }) => [
        warmsUp(scalars, step) ? { kind: "meanGradient" } : compensatedMessage(vector),
      ],

      adopt: (scalars, step) => ({ ...scalars, ...resumedWarmup(where, scalars, warmup, step) }),
    };
  },
});
