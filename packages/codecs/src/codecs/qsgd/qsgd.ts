/**
 * qsgd: levels up to the Euclidean norm, drawn so that the mean is x. Alistarh, Grubic, Li, Tomioka, Vojnović 2017,
 * "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", https://arxiv.org/abs/1610.02132, §3.1;
 * fields of a fixed width in place of its Elias code
 *
 *   s     = 2^(bits − 1) − 1
 *   scale = fp32(‖x‖₂)
 *   |q|   = ⌊v⌋ + draw(v − ⌊v⌋), v = min(|x| · (s / scale), s)     0 where scale is 0
 *   wire  = scales, then q + s in fields;  decoded = q · (scale / s)
 *
 * This file is the definition: qsgd.c, qsgd_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Codec } from "../../codec.ts";
import { checkedLevels, levels, summableLevels } from "../../shared/levels/levels.ts";
import { evenly, stochastic } from "../../shared/levels/stochastic.ts";
import type { RandomStream } from "../../shared/random/random.ts";
import { sumOfSquares } from "../../shared/reductions/reductions.ts";
import type { ScaleGroups } from "../../shared/scale-groups/scale-groups.ts";
import { linf } from "../linf/linf.ts";

export const definition = levels({
  name: "qsgd",
  takes: { random: true },
  gradients: {
    chosen: {
      bits: { means: "the bits of an element", needed: true },
      block: { means: "the elements that share a scale" },
    },
    noFeedback: () => "draws its levels at random, and their error may exceed the gradient",
  },
  reach: 1,
  summable: (parameters) => summableLevels(parameters.bits!, 1, parameters, linf),
  scaleOf: (x) => Math.sqrt(sumOfSquares(x)),
  quantiser: (scale, s, _, call) => stochastic(s / scale, s, evenly, call),
});

/** Parameters of `qsgd`. */
export interface QsgdParameters extends ScaleGroups {
  /** Bits of one float, 2 to 8: 2^bits − 1 levels. */
  readonly bits: number;
}

/** Levels up to the Euclidean norm, drawn. Alistarh et al. 2017, §3.1. A wrong parameter is a ParameterError. */
export const qsgd = (parameters: QsgdParameters): Codec<RandomStream> =>
  codec(definition, checkedLevels("qsgd", parameters, ["bits", "block", "segments"]));
