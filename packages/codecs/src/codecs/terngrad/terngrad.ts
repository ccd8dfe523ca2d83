/**
 * terngrad: −1, 0 or +1 per float, drawn so that the mean is x, times the largest magnitude of the scale group.
 * Wen et al. 2017, "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning",
 * https://arxiv.org/abs/1705.07878
 *
 *   scale[r]  = max |x[i]| of scale group r; with clip = c at most c σ, σ: the scale group's standard deviation
 *   t[i]      = sign(x[i]) with probability |x[i]| · (1 / scale), else 0                  (equations 1 and 3)
 *   decoded   = t scale
 *
 * The wire: scales, one fp32 per scale group, then the codes t + 1, two bits each, by quarters of the whole vector, of
 * Q = ⌈n/4⌉ elements:
 *
 *   byte j    = code[j] + 4 code[Q + j] + 16 code[2 Q + j] + 64 code[3 Q + j]              0 past the end
 *
 * If all elements of a scale group are equal, σ = 0 and the group is not clipped. Scaling and drawing are in fp64.
 * This file is the definition: terngrad.c, terngrad_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Definition } from "../../codec.ts";
import { floats } from "../../shared/floats.ts";
import { checkNames, checkScaleGroups, ParameterError } from "../../shared/parameters.ts";
import { draws, type RandomStream } from "../../shared/random/random.ts";
import { deviation, firstNotFinite, largest } from "../../shared/reductions/reductions.ts";
import {
  type ScaleGroups,
  scaledWire,
  scaleGroupCount,
  scaleGroupsOf,
} from "../../shared/scale-groups/scale-groups.ts";

export const definition: Definition = {
  name: "terngrad",
  implementation: "typescript",
  takes: { random: true },
  gradients: {
    chosen: {
      block: { means: "the elements that share a scale" },
      clip: { means: "the standard deviations to clip at" },
    },
    noFeedback: () => "draws −1, 0 and 1 at random, and their error may exceed the gradient",
  },
  wireBytes: (n, parameters) => 4 * scaleGroupCount(n, parameters) + Math.ceil(n / 4),

  encode(wire, x, parameters, call) {
    const values = floats(x);
    const bad = firstNotFinite(values);
    if (bad < values.length) return bad;
    const below = draws(call as RandomStream);
    const { fields, setScale } = scaledWire(wire, values.length, parameters);
    fields.fill(0);
    for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
      const scale = scaleOf(values.subarray(begin, end), parameters.clip ?? 0);
      setScale(r, scale);
      const one = scale === 0 ? 0 : 1 / scale;
      for (let i = begin; i < end; i++) {
        const t = below(i, Math.abs(values[i]!) * one) ? Math.sign(values[i]!) : 0;
        fields[i % fields.length]! |= (t + 1) << (2 * Math.floor(i / fields.length));
      }
    }
    return values.length;
  },

  decodeAdd(sum, wire, parameters, { scale }) {
    const sums = floats(sum);
    const { fields, good, ...scales } = scaledWire(wire, sums.length, parameters);
    if (!good()) return false;
    const one = Math.fround(scale);
    for (const [r, [begin, end]] of scaleGroupsOf(sums.length, parameters).entries()) {
      for (let i = begin; i < end; i++) {
        const code = (fields[i % fields.length]! >> (2 * Math.floor(i / fields.length))) & 3;
        const t = Math.min(code, 2) - 1; // no encoder writes 3
        sums[i]! += Math.fround(t * scales.scale(r) * one);
      }
    }
    return true;
  },
};

function scaleOf(x: Float32Array, clip: number): number {
  const most = largest(x);
  const σ = clip === 0 ? 0 : deviation(x);
  return σ === 0 ? most : Math.fround(Math.min(most, Math.fround(clip) * σ));
}

/** Parameters of `terngrad`. */
export interface TernGrad extends ScaleGroups {
  /**
   * Gradient clipping: magnitudes beyond this many standard deviations count as that many. 2.5 in the paper, none
   * unless given.
   */
  readonly clip?: number | undefined;
}

/**
 * Two bits per float, unbiased (but for what `clip` cuts off). The whole vector shares a scale unless `block` (floats
 * that share one) or `segments` (lengths of parts that do, together n) are given; the paper has one a layer.
 */
export function terngrad(parameters: TernGrad = {}) {
  checkNames("terngrad", parameters, ["block", "segments", "clip"]);
  checkScaleGroups("terngrad", parameters);
  const { clip = 0 } = parameters;
  const good = typeof clip === "number" && (clip === 0 || (Math.fround(clip) > 0 && Math.fround(clip) < Infinity));
  if (!good) throw new ParameterError("terngrad", "clip", clip, "a number of standard deviations, 0 for none");
  return codec<RandomStream>(definition, parameters);
}
