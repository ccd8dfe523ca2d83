/**
 * TernGrad: −1, 0 or +1 for each element, drawn so that the mean is the gradient. Wen, Xu, Yan, Wu, Wang, Chen, Li
 * 2017, "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning", Algorithm 1 and §5,
 * https://arxiv.org/abs/1705.07878
 *
 *   g ← max(−c σ, min(g, c σ))      gradient clipping, §5: c = `clip`, σ: the standard deviation of the layer's g
 *   s ← max |g|                     of the layer; with `scaler: shared` also max over the ranks
 *   t ← sign(g) b,  P(b = 1) = |g| / s
 *   g ← s mean_ranks(t)
 *
 * A shared scaler (§3.2) lets the ranks add whole numbers, exactly, so that few bits go up and few come down. With
 * `scaler: own` every rank sends its own s with its t to every other one. The authors' code takes c σ itself for s,
 * also where no |g| is as large. Clipping is the one bias; without it (`clip: 0`) the mean of g is the gradient's. A
 * layer of equal elements has σ = 0, and is not clipped.
 *
 * Shapes: g, t (n)   s, σ: a number for each layer
 * Sent per step, in bytes, by a rank that owns c of the n elements; w bits hold whole numbers from −P to P:
 *   shared   an all-reduce of a scaler for each layer and each pad, then Σ_{r ≠ rank} ⌈c_r / 4⌉ + (P − 1) ⌈c w / 8⌉
 *   own      (P − 1)(4 + ⌈n / 4⌉) for each layer
 */
import { type Codec, linf, terngrad as terngradCodec } from "@terse/codecs";
import { sumOfSquares } from "@terse/native-optimizers";
import { nonNegativeFloat, oneOf, v } from "@terse/options";
import { noGrad, scope, type Tensor } from "@terse/tensor";
import type { Vector } from "../algorithms/algorithm.ts";
import { drawsOf, seed } from "../algorithms/draws.ts";
import { perVector } from "../algorithms/per-vector.ts";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { CompressionRules } from "./gradient-compression.ts";

const options = v.object({
  clip: v.optional(nonNegativeFloat, 2.5), // c; 0: none
  scaler: v.optional(oneOf(["shared", "own"]), "shared"), // whether ranks agree on s
  seed,
});

/** TernGrad: −1, 0 or +1 an element, drawn so that the mean is the gradient. Wen et al. 2017, Algorithm 1 and §5. */
export const terngrad = define({
  name: "terngrad",
  options,
  kept: () => ({ scaler: makesState }),

  create({ clip, scaler, seed }): CompressionRules {
    const own = terngradCodec({ clip }) as Codec;
    /** t with the s of all ranks: levels −1, 0 and 1 of the maximum of each layer. */
    const sharedBy = perVector(({ lengths }) => linf({ bits: 2, segments: lengths }) as Codec);
    return {
      splits: scaler === "own" ? "at segments" : "anywhere",

      init: () => ({}),

      async mean(g, _, exchange, context) {
        const { vector } = context;
        const draws = drawsOf(seed, context);
        if (scaler === "shared" && clip > 0) clipLayers(g, vector, clip);
        if (scaler === "own") await exchange.sparse(g, { codec: own, ...draws });
        else await exchange.sumOfFields(g, { codec: sharedBy(vector), scale: 1 / exchange.ranks, ...draws });
      },

      messages: (vector) => [
        scaler === "own"
          ? { kind: "sparse", n: vector.n, codec: own }
          : { kind: "sumOfFields", n: vector.n, codec: sharedBy(vector) },
      ],
    };
  },
});

/**
 * Clips each layer to c standard deviations. Where an element is not finite, the sum of squares is not either, and the
 * layer stays as it is.
 */
function clipLayers(g: Tensor, { n, offset, segments }: Vector, c: number): void {
  scope(() =>
    noGrad(() => {
      for (const segment of segments) {
        const layer = g.view(n).narrow(0, segment.offset - offset, segment.length);
        const σ = layer.std(undefined, { correction: 0 }).item();
        if (σ > 0 && Number.isFinite(sumOfSquares(layer))) layer.clamp_({ min: -c * σ, max: c * σ });
      }
    }),
  );
}
