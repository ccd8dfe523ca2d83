/**
 * l1: evenly spaced levels up to twice the mean magnitude; larger numbers are clamped. Ishikawa et al. 2024, "Lion Cub:
 * Minimizing Communication Overhead in Distributed Lion", https://arxiv.org/abs/2411.16462, §4.2
 *
 *   s     = 2^(bits − 1) − 1, or fewer: `side`
 *   scale = fp32(‖x‖₁ / M)                                        M: elements of the scale group
 *   q     = clamp(round half even((x · s) / (2 scale)), −s, s)    0 where scale is 0
 *   wire  = scales, then q + s in fields;  decoded = q · (2 scale / s)
 *
 * An unscaled wire has no scales, and decodes to q; the sum of the wires of `ranks` ranks decodes to Σ q. With units
 * that the ranks agreed on, q = clamp(round half even(x / unit), −s, s), and the sum decodes to (Σ q) · unit. This file
 * is the definition: l1.c, l1_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Codec, Units } from "../../codec.ts";
import { checkedLevels, levels, summableLevels } from "../../shared/levels/levels.ts";
import { sumOfMagnitudes } from "../../shared/reductions/reductions.ts";
import { roundHalfEven } from "../../shared/rounding.ts";
import type { ScaleGroups } from "../../shared/scale-groups/scale-groups.ts";

export const definition = levels({
  name: "l1",
  takes: { units: true },
  gradients: {
    chosen: {
      bits: { means: "the bits of an element", needed: true },
      block: { means: "the elements that share a scale" },
    },
  },
  reach: 2,
  summable: (parameters) => summableLevels(parameters.bits!, 2, parameters, l1),
  scaleOf: (x) => sumOfMagnitudes(x) / x.length,
  quantiser(scale, s, _, { units }) {
    const [times, over] = units ? [1, scale] : [s, 2 * scale]; // only the division rounds
    return (value) => roundHalfEven(Math.max(-s, Math.min(s, (value * times) / over)));
  },
});

/** Parameters of `l1`. */
export interface L1Parameters extends ScaleGroups {
  /** Bits of one float, 2 to 8: 2^bits − 1 levels. */
  readonly bits: number;
  /** s, the levels on each side of 0: as many as bits hold, 2^(bits − 1) − 1, unless given, and at most as many. */
  readonly side?: number | undefined;
  /** Bits of a field: bits, 4, 8 or 16; the narrowest with room for the sum of all ranks unless given. */
  readonly width?: number | undefined;
  /** No scales on the wire: the levels of all ranks have the same weight, and wires can be summed. */
  readonly unscaled?: boolean | undefined;
  /**
   * How many unscaled wires are summed: ranks (2^bits − 1) ≤ 2^width − 1, or with `side` ranks · 2 s ≤ 2^width − 1. 1
   * unless given.
   */
  readonly ranks?: number | undefined;
}

/** Levels up to twice the mean magnitude. Ishikawa et al. 2024, §4.2. A wrong parameter is a ParameterError. */
export const l1 = (parameters: L1Parameters): Codec<Units> =>
  codec(
    definition,
    checkedLevels("l1", parameters, ["bits", "side", "width", "unscaled", "ranks", "block", "segments"]),
  );
