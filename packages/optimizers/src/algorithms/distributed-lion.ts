/**
 * Distributed Lion: every worker keeps its own momentum and sends the sign of its update.
 * Liu, Wu, Chen, Liang, Zhu, Liang, Krishnamoorthi, Liu 2024, Algorithm 1, https://arxiv.org/abs/2404.00438
 *
 *   δ ← sign(β₁ m + (1 − β₁) g)      g, m: this rank's own gradient and momentum
 *   m ← β₂ m + (1 − β₂) g
 *   Δ ← sign(Σ_ranks δ)              Majority Vote: a tie is 0
 *     or (1/P) Σ_ranks δ             Averaging
 *   θ ← θ − η (Δ + λ θ)
 *
 * Shapes: θ, g, m, Δ (n)   δ: n bits
 * Sent per step, P ranks: 1 message, n/8 (P − 1)/P bytes up; down as much for a majority of an odd number of ranks, twice that for
 * an even one (which can tie), ⌈log2(P + 1)⌉ times that for the average.
 */
import { signAt } from "@terse/codecs";
import { nonNegativeFloat, oneOf, parseOptions, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { momentumSyncOptions } from "../momentum-sync.ts";
import type { Algorithm } from "./algorithm.ts";
import { applyVote, lionVote } from "./kernels.ts";
import type { State } from "./state.ts";

export const distributedLionOptions = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  vote: v.optional(oneOf(["majority", "average"]), "majority"), // Δ
  zero: v.optional(oneOf(["plus", "minus", "alternate"]), "alternate"), // sign(0), which the paper leaves open
  tie: v.optional(oneOf(["zero", "plus", "minus", "alternate"]), "zero"), // sign(Σ δ = 0)
  momentumSync: v.optional(momentumSyncOptions, {}), // which layers' m is averaged, and when; none in the paper
});

export interface DistributedLionState extends State {
  readonly elements: {
    m: Tensor; // this rank's own, unless it is synchronised
  };
}

export function distributedLion(
  options: v.InferInput<typeof distributedLionOptions> = {},
): Algorithm<DistributedLionState> {
  const { beta1, beta2, weightDecay, vote, zero, tie, momentumSync } = parseOptions(
    distributedLionOptions,
    options,
    "distributed-lion",
  );
  return {
    name: "distributed-lion",
    splits: "anywhere",
    momentumSync,

    init: (θ) => ({ elements: { m: zerosLike(θ) } }),

    async step(θ, g, { elements: { m } }, exchange, { step, lr: η, gradientScale }) {
      const δ = lionVote(m, g, { beta1, beta2, zero: signAt(zero, step), gradientScale });

      using Δ =
        vote === "average"
          ? await exchange.tally(δ)
          : await exchange.majority(δ, { tie: tie === "zero" ? tie : signAt(tie, step) });

      applyVote(θ, Δ, { keep: 1 - η * weightDecay, scale: -η });
    },

    messages: ({ n }) => [
      { kind: "vote", n, outcome: vote === "average" ? "tally" : tie === "zero" ? "zero" : "plus" },
    ],
  };
}
