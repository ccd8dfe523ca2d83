/**
 * AdamW: Adam with decoupled weight decay. Loshchilov and Hutter 2019, Algorithm 2, https://arxiv.org/abs/1711.05101
 *
 *   g ← mean_ranks(g)                all-reduce, n floats
 *   m ← β₁ m + (1 − β₁) g
 *   v ← β₂ v + (1 − β₂) g²
 *   m̂ ← m / (1 − β₁ᵗ)   v̂ ← v / (1 − β₂ᵗ)        t from 1
 *   θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)
 *
 * Shapes: θ, g, m, v (n)
 * Sent per step: 1 message, 2 (P − 1)/P · 4 n bytes.
 */
import { adamwStep } from "@terse/native-optimizers";
import { nonNegativeFloat, positiveFloat, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import type { State } from "./state.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  eps: v.optional(positiveFloat, 1e-8), // ε
  weightDecay: v.optional(nonNegativeFloat, 0.01), // λ, PyTorch's default
});

export interface AdamwState extends State {
  readonly elements: {
    m: Tensor; // first moment, the same on every rank
    v: Tensor; // second moment, the same on every rank
  };
}

/** AdamW: Adam with decoupled weight decay; ranks average their gradients. Loshchilov and Hutter 2019, Algorithm 2. */
export const adamw = define({
  name: "adamw",
  options,

  create: ({ beta1, beta2, eps, weightDecay }): Rules<AdamwState> => ({
    splits: "anywhere",
    takesMean: true,
    variance: { beta2 },

    init: (θ) => ({ elements: { m: zerosLike(θ), v: zerosLike(θ) } }),

    async step(θ, g, { elements: { m, v } }, exchange, { step, lr }) {
      const gradientScale = await exchange.meanGradient(g);
      await exchange.agreed();

      // the last four lines, one pass over θ, m, v and g
      adamwStep(θ, m, v, g, { lr, beta1, beta2, eps, weightDecay, step: step + 1, gradientScale });
    },

    messages: () => [{ kind: "meanGradient" }],
  }),
});
