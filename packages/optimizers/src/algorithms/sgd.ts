/**
 * SGD with momentum, as torch.optim.SGD. Sutskever et al. 2013, "On the importance of initialization and momentum in
 * deep learning"
 *
 *   g ← mean_ranks(g)                all-reduce, n floats
 *   d ← g + λ θ
 *   m ← μ m + (1 − τ) d              τ: dampening; the first time m ← d
 *   θ ← θ − η m                      Nesterov: θ ← θ − η (d + μ m); without momentum θ ← θ − η d
 *
 * Shapes: θ, g, m (n); no m without momentum
 * Sent per step: 1 message, 2 (P − 1)/P · 4 n bytes.
 */
import { sgdStep } from "@terse/native-optimizers";
import { flag, nonNegativeFloat, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { keptAboveZero } from "../kept-options.ts";
import type { Rules } from "./algorithm.ts";
import type { State } from "./state.ts";

const options = v.object({
  momentum: v.optional(unitIntervalFloat, 0), // μ
  dampening: v.optional(unitIntervalFloat, 0), // τ
  weightDecay: v.optional(nonNegativeFloat, 0), // λ, added to the gradient
  nesterov: v.optional(flag, false),
});

export interface SgdState extends State {
  readonly elements: {
    m?: Tensor; // the same on every rank
  };
}

/** SGD with momentum, as torch.optim.SGD; ranks average their gradients. Sutskever et al. 2013. */
export const sgd = define({
  name: "sgd",
  options,
  kept: keptAboveZero("momentum"),
  conflicts: [
    {
      option: "nesterov",
      when: ({ nesterov, momentum, dampening }) => nesterov && (momentum === 0 || dampening > 0),
      because: () => "needs a momentum above 0 and a dampening of 0",
      remedy: "set them, or leave nesterov out",
    },
  ],

  create: ({ momentum, dampening, weightDecay, nesterov }): Rules<SgdState> => ({
    splits: "anywhere",
    takesMean: true,

    init: (θ) => ({ elements: momentum > 0 ? { m: zerosLike(θ) } : {} }),

    async step(θ, g, { elements: { m } }, exchange, { step, lr }) {
      const gradientScale = await exchange.meanGradient(g);
      await exchange.agreed();

      // the last three lines, one pass over θ, m and g
      const first = step === 0;
      sgdStep(θ, m, g, { lr, momentum, dampening, weightDecay, nesterov, first, gradientScale });
    },

    messages: () => [{ kind: "meanGradient" }],
  }),
});
