/**
 * Lion: EvoLved Sign Momentum. Chen et al. 2023, Program 1, https://arxiv.org/abs/2302.06675
 *
 *   g ← mean_ranks(g)                all-reduce, n floats
 *   c ← β₁ m + (1 − β₁) g
 *   m ← β₂ m + (1 − β₂) g
 *   θ ← θ − η (sign(c) + λ θ)        sign(0) = 0
 *
 * Shapes: θ, g, m, c (n)
 * Sent per step: 1 message, 2 (P − 1)/P · 4 n bytes.
 */
import { signAt } from "@terse/codecs";
import { lionStep } from "@terse/native-optimizers";
import { nonNegativeFloat, oneOf, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import type { State } from "./state.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁: weight of the momentum in the update
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂: weight of the momentum in itself
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  zero: v.optional(oneOf(["hold", "plus", "minus", "alternate"]), "hold"), // sign(0): others to compare with one bit
});

export interface LionState extends State {
  readonly elements: {
    m: Tensor; // the same on every rank
  };
}

/** Lion: the sign of a momentum; ranks average their gradients. Chen et al. 2023, Program 1. */
export const lion = define({
  name: "lion",
  options,

  create: ({ beta1, beta2, weightDecay, zero }): Rules<LionState> => ({
    splits: "anywhere",
    takesMean: true,

    init: (θ) => ({ elements: { m: zerosLike(θ) } }),

    async step(θ, g, { elements: { m } }, exchange, { step, lr: η }) {
      const gradientScale = await exchange.meanGradient(g);
      await exchange.agreed();

      // the last three lines, one pass over θ, m and g
      const sign = zero === "hold" ? zero : signAt(zero, step);
      lionStep(θ, m, g, { lr: η, beta1, beta2, weightDecay, zero: sign, gradientScale });
    },

    messages: () => [{ kind: "meanGradient" }],
  }),
});
