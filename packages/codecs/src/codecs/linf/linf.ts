/**
 * linf: levels up to the largest magnitude, drawn so that the mean is x. Ishikawa et al. 2024, "Lion Cub: Minimizing
 * Communication Overhead in Distributed Lion", https://arxiv.org/abs/2411.16462, §2 (Q∞) and §4.2 (without zero,
 * logarithmic)
 *
 *   s     = 2^(bits − 1) − 1
 *   scale = ‖x‖_∞
 *   uniform        v = min(|x| · (s / scale), s);  |q| = ⌊v⌋ + draw(v − ⌊v⌋)          decoded = q · (scale / s)
 *   without-zero   the same, but a level 0 of an x ≠ 0 becomes ±1
 *   logarithmic    levels 0 and scale · 2^(k − s), k = 1 … s; one of x's two is drawn   decoded = ± scale · 2^(|q| − s)
 *   wire  = scales, then q + s in fields
 *
 * An unscaled wire has no scales, and decodes to q; the sum of the wires of `ranks` ranks decodes to Σ q. With units
 * that the ranks agreed on, v = min(|x| · (1 / unit), s), and the sum decodes to (Σ q) · unit. This file is the
 * definition: linf.c, linf_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Codec, Units } from "../../codec.ts";
import { checkedLevels, levels, summableLevels } from "../../shared/levels/levels.ts";
import { evenly, stochastic } from "../../shared/levels/stochastic.ts";
import { checkChoice } from "../../shared/parameters.ts";
import type { RandomStream } from "../../shared/random/random.ts";
import { largest } from "../../shared/reductions/reductions.ts";
import type { ScaleGroups } from "../../shared/scale-groups/scale-groups.ts";

export const definition = levels({
  name: "linf",
  takes: { random: true, units: true },
  gradients: {
    chosen: {
      bits: { means: "the bits of an element", needed: true },
      block: { means: "the elements that share a scale" },
    },
    noFeedback: ({ bits }) =>
      bits === 2 ? "draws −1, 0 and 1 at random, and their error may exceed the gradient" : undefined,
  },
  reach: 1,
  summable: ({ levels: kind, ...parameters }) =>
    kind === "logarithmic"
      ? undefined
      : summableLevels(parameters.bits!, 1, parameters, (given) => linf({ ...given, ...(kind && { levels: kind }) })),
  scaleOf: largest,

  quantiser(scale, s, { levels: kind }, call) {
    if (kind === "logarithmic") return stochastic(1 / scale, 1, (v) => belowPowers(v, s), call);
    const level = stochastic(call.units ? 1 / scale : s / scale, s, evenly, call);
    if (kind !== "without-zero") return level;
    return (value, i) => level(value, i) || Math.sign(value);
  },

  standsFor(q, scale, s, { levels: kind }) {
    if (kind !== "logarithmic") return q * (scale / s);
    return q === 0 ? 0 : Math.sign(q) * scale * 2 ** (Math.abs(q) - s);
  },
});

/** Where levels lie, in the order of their numbers in a frame. */
export const kindsOfLevels = ["uniform", "without-zero", "logarithmic"] as const;

/** Among the powers 2^(k − s), k = 1 … s, and 0. */
function belowPowers(v: number, s: number): [level: number, p: number] {
  let k = s;
  while (k > 0 && v < 2 ** (k - s)) k--;
  return k === 0 ? [0, v / 2 ** (1 - s)] : [k, v / 2 ** (k - s) - 1];
}

/** Parameters of `linf`. */
export interface LinfParameters extends ScaleGroups {
  /** Bits of one float, 2 to 8: 2^bits − 1 levels. */
  readonly bits: number;
  /** Where the levels lie; "uniform" unless given. */
  readonly levels?: (typeof kindsOfLevels)[number] | undefined;
  /** Bits of a field: bits, 4, 8 or 16; the narrowest with room for the sum of all ranks unless given. */
  readonly width?: number | undefined;
  /**
   * No scales on the wire: the levels of all ranks have the same weight, and wires can be summed. Not with logarithmic
   * levels.
   */
  readonly unscaled?: boolean | undefined;
  /** How many unscaled wires are summed: ranks (2^bits − 1) ≤ 2^width − 1. 1 unless given. */
  readonly ranks?: number | undefined;
}

/**
 * Levels up to the largest magnitude, drawn. Ishikawa et al. 2024, §2 and §4.2. A wrong parameter is a ParameterError.
 */
export function linf(parameters: LinfParameters): Codec<RandomStream & Units> {
  const taken = ["bits", "levels", "width", "unscaled", "ranks", "block", "segments"];
  const checked = checkedLevels("linf", parameters, taken);
  if (parameters.levels !== undefined) checkChoice("linf", "levels", parameters.levels, kindsOfLevels);
  if (parameters.levels === "logarithmic" && parameters.unscaled)
    throw new RangeError(
      "linf: logarithmic levels are not evenly spaced, so their numbers cannot be summed: leave unscaled out.",
    );
  return codec(definition, checked);
}
