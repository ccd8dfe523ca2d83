/**
 * signSGD and Signum with majority vote. Bernstein et al. 2018, "signSGD: Compressed Optimisation for Non-Convex
 * Problems", Algorithms 1 and 2, https://arxiv.org/abs/1802.04434; Bernstein et al. 2019, Algorithm 1,
 * https://arxiv.org/abs/1810.05291
 *
 *   m ← β m + (1 − β) g              this rank's own gradient and momentum; signSGD: β = 0, so m is g
 *   v ← majority_ranks(sign(m))      one bit up, one bit down
 *   θ ← θ − η (v + λ θ)
 *
 * The paper leaves sign(0) and a tie open, and its code takes + for both. By default zeros and ties are + and − on
 * alternate steps, so that a parameter without gradient stays within η of where it is.
 *
 * Shapes: θ, g, m (n)   v: n bits
 * Sent per step: 1 message, 2 (P − 1)/P · n/8 bytes.
 */
import { signAt } from "@terse/codecs";
import { nonNegativeFloat, oneOf, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import { applyVote, lionVote } from "./kernels.ts";
import type { State } from "./state.ts";

const shared = {
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  zero: v.optional(oneOf(["plus", "minus", "alternate"]), "alternate"), // sign(0)
  tie: v.optional(oneOf(["plus", "minus", "alternate"]), "alternate"), // of as many votes each way
};

export interface SignumState extends State {
  readonly elements: {
    m: Tensor; // this rank's own
  };
}

/** signSGD with majority vote: ranks send the signs of their gradients. Bernstein et al. 2018, Algorithm 1. */
export const signsgd = define({
  name: "signsgd",
  options: v.object(shared),
  create: (options) => rules({ ...options, beta: 0 }),
});

/**
 * Signum with majority vote: ranks send the signs of their momenta. Bernstein et al. 2018, Algorithm 2; 2019, Algorithm
 * 1.
 */
export const signum = define({
  name: "signum",
  options: v.object({
    ...shared,
    beta: v.optional(unitIntervalFloat, 0.9), // β
  }),
  create: (options) => rules(options),
});

type Zero = v.InferOutput<(typeof shared)["zero"]>;

function rules({
  beta,
  weightDecay,
  zero,
  tie,
}: {
  beta: number;
  weightDecay: number;
  zero: Zero;
  tie: Zero;
}): Rules<SignumState> {
  return {
    splits: "anywhere",
    votes: { beta1: beta, beta2: beta },

    init: (θ) => ({ elements: { m: zerosLike(θ) } }),

    async step(θ, g, { elements: { m } }, exchange, { step, lr: η, gradientScale }) {
      // With both weights the same, Lion's vote is the sign of the new m.
      const u = lionVote(m, g, { beta1: beta, beta2: beta, zero: signAt(zero, step), gradientScale });

      using Δ = await exchange.majority(u, { tie: signAt(tie, step) });
      await exchange.agreed();

      applyVote(θ, Δ, { keep: 1 - η * weightDecay, scale: -η });
    },

    messages: ({ n }, step) => [{ kind: "vote", n, outcome: signAt(tie, step) }],
  };
}
