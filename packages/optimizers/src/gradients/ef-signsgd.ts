/**
 * EF-signSGD: one bit per element and one magnitude for each layer; what a bit cannot carry is added at the next step.
 * Karimireddy, Rebjock, Stich, Jaggi 2019, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes",
 * Algorithm 1, https://arxiv.org/abs/1901.09847
 *
 *   p ← g + e                       e: the rank's own error
 *   Δ ← (‖p‖₁ / n) sign(p)          n: elements of the layer
 *   e ← p − Δ
 *   g ← mean_ranks(Δ)               every rank sends its Δ to every other one
 *
 * The learning rate stands in p in the paper; here the optimizer multiplies by it afterwards. The sign of 0 is plus.
 *
 * Shapes: g, p, e, Δ (n)
 * Sent per step: 1 message, (P − 1)(4 + ⌈n / 8⌉) bytes for each layer. For many ranks `codec` with scaled-sign sends
 * fewer, both ways in one bit.
 */
import { type Codec, scaledSign } from "@terse/codecs";
import { v } from "@terse/options";
import { keep, noGrad, scope, type Tensor, where, zerosLike } from "@terse/tensor";
import type { State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import type { CompressionRules } from "./gradient-compression.ts";

export interface EfSignsgdState extends State {
  readonly elements: {
    gradientError: Tensor; // e, each rank's own
  };
}

/** Carries ± s exactly: the root of the mean square of s is s. */
const codec = scaledSign() as Codec;

/**
 * EF-signSGD: one bit an element and one magnitude a layer, with error feedback. Karimireddy et al. 2019, Algorithm 1.
 */
export const efSignsgd = define({
  name: "ef-signsgd",
  options: v.object({}),

  create: (): CompressionRules<EfSignsgdState> => ({
    splits: "at segments",

    init: (θ) => ({ elements: { gradientError: zerosLike(θ) } }),

    async mean(g, { elements: { gradientError: e } }, exchange) {
      using Δ = noGrad(() => {
        e.add_(g);
        return scope(() => {
          const magnitude = e.abs().mean();
          return keep(where(e.ge(0), magnitude, magnitude.neg()));
        });
      });
      noGrad(() => e.sub_(Δ));
      noGrad(() => g.zero_());
      await exchange.sparse(Δ, { into: g, codec, zero: "plus" });
    },

    messages: ({ n }) => [{ kind: "sparse", n, codec }],
  }),
});
