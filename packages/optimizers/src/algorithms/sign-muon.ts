/**
 * SignMuon: ranks vote with the signs of their own orthogonalised momenta. Trivedi, Mishra, Kumar 2026, "SignMuon:
 * Communication-Efficient Distributed Muon Optimization", https://arxiv.org/abs/2605.16311
 *
 *   M ← μ M + (1 − μ) g              this rank's own gradient and momentum
 *   U ← NS(M)                        Newton–Schulz (newton-schulz.ts); Nesterov: NS(μ M + (1 − μ) g)
 *   V ← majority_ranks(sign(U))      one bit up, one bit down
 *   X ← X − η (V + λ X)
 *
 * Form and defaults of M and NS are those of muon.ts. The paper can also orthogonalise V on each rank. That is left
 * out: the last bits of the products depend on the processor, and ranks with other processors would no longer have the
 * same X.
 *
 * A rank works on its own gradient, so each pays all matrix products; Muon's ranks share them.
 *
 * Shapes: X, g, M, U (m, n)   V: m n bits
 * Sent per step: 1 message, 2 (P − 1)/P · m n/8 bytes.
 */
import { signAt } from "@terse/codecs";
import { flag, nonNegativeFloat, oneOf, positiveFloat, positiveInteger, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import { applyVote, lionVote } from "./kernels.ts";
import { type Coefficients, orthogonalize } from "./newton-schulz.ts";
import type { State } from "./state.ts";

const options = v.object({
  momentum: v.optional(unitIntervalFloat, 0.95), // μ
  nesterov: v.optional(flag, true),
  weightDecay: v.optional(nonNegativeFloat, 0.1), // λ
  nsSteps: v.optional(v.pipe(positiveInteger, v.maxValue(99)), 5),
  nsType: v.optional(oneOf(["auto", "f32", "bf16"]), "auto"), // of the iterations
  eps: v.optional(positiveFloat, 1e-7),
  tie: v.optional(oneOf(["plus", "minus", "alternate"]), "alternate"), // of as many votes each way, and sign(0)
});

export interface SignMuonState extends State {
  readonly elements: {
    M: Tensor; // this rank's own
  };
}

const standard: Coefficients = [3.4445, -4.775, 2.0315];

/** SignMuon: one bit of each rank's own orthogonalised momentum, by majority. Trivedi et al. 2026. */
export const signMuon = define({
  name: "sign-muon",
  options,

  create(given): Rules<SignMuonState> {
    const { weightDecay, nsSteps, tie } = given;
    const coefficients = new Array<Coefficients>(nsSteps).fill(standard);
    return {
      splits: "at segments",
      takes: "matrices",

      init: (X) => ({ elements: { M: zerosLike(X) } }),

      async step(X, G, { elements: { M } }, exchange, { step, lr: η, gradientScale }) {
        orthogonalize(M, G, gradientScale, coefficients, given); // G: U
        // With these weights Lion's vote is the sign of U, and M stays as it is.
        const u = lionVote(M, G, { beta1: 0, beta2: 1, zero: signAt(tie, step), gradientScale: 1 });

        using V = await exchange.majority(u, { tie: signAt(tie, step) });
        await exchange.agreed();

        applyVote(X, V, { keep: 1 - η * weightDecay, scale: -η });
      },

      messages: ({ n }, step) => [{ kind: "vote", n, outcome: signAt(tie, step) }],
    };
  },
});
