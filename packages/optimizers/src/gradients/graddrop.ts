/**
 * Gradient dropping: the few largest elements are sent, and the others are kept for later. Aji and Heafield 2017,
 * "Sparse Communication for Distributed Gradient Descent", Algorithm 1, https://arxiv.org/abs/1704.05021
 *
 *   e ← e + g                       e: the residual, the rank's own
 *   d ← e where |e| > t, else 0     t: the quantile 1 − ratio of |e|, of each layer or of the whole model; among equals
 *                                   the first ones are sent
 *   e ← e − d
 *   g ← mean_ranks(d)               every rank sends its d to every other one
 *
 * The authors' code takes t from a sample of at most 100 000 elements; here it is exact, so that the number of elements
 * sent is known.
 *
 * Shapes: g, e, d (n)
 * Sent per step: 1 message, (P − 1)(4 k + ⌈k ⌈log₂ n⌉ / 8⌉) bytes for each layer, k = ⌈ratio · n⌉.
 */
import { oneOf, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import type { State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { CompressionRules } from "./gradient-compression.ts";
import { ratio, topOf } from "./largest.ts";

const options = v.object({
  ratio: v.optional(ratio, 0.01), // of the elements that are sent
  threshold: v.optional(oneOf(["layer", "model"]), "layer"), // what has one t
});

export interface GraddropState extends State {
  readonly elements: {
    residual: Tensor; // e, each rank's own
  };
}

/**
 * Gradient dropping: sends the few largest elements, and keeps the others for later. Aji and Heafield 2017, Algorithm
 * 1.
 */
export const graddrop = define({
  name: "graddrop",
  options,
  kept: () => ({ threshold: makesState }),

  create: ({ ratio, threshold }, where): CompressionRules<GraddropState> => ({
    splits: threshold === "layer" ? "at segments" : "nowhere",
    perLayer: `${where}.threshold: layer`,

    init: (θ) => ({ elements: { residual: zerosLike(θ) } }),

    async mean(g, { elements: { residual: e } }, exchange, { vector }) {
      await exchange.sparse(g, { codec: topOf(vector.n, ratio), error: e });
    },

    messages: ({ n }) => [{ kind: "sparse", n, codec: topOf(n, ratio) }],
  }),
});
