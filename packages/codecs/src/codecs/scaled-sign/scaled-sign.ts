/**
 * scaled-sign: one bit per float, and one magnitude for all floats of a scale group. Seide et al. 2014, "1-Bit
 * Stochastic Gradient Descent"; Tang et al. 2021, "1-bit Adam", https://arxiv.org/abs/2102.02888; Li et al. 2021,
 * "1-bit LAMB", https://arxiv.org/abs/2104.06069
 *
 *   scale[r]  = fp32(√(Σ x[i]² / count))    over the unmasked elements of scale group r; 0 if there are none
 *   bit i     = x[i] > 0, or x[i] = 0 and zeros count as plus; 0 in a scale group whose scale is 0
 *   decoded   = +scale where the bit is 1, −scale where it is 0
 *
 * The wire: scales, one fp32 per scale group, then the bits as sign writes them. A masked element (bit 1 in `hold`) is
 * written as 0, decodes to nothing, and does not enter the scale. This file is the definition: scaled_sign.c,
 * scaled_sign_avx2.c, … write the same bytes.
 */
import type { SumCall } from "@terse/native-codecs";
import { codec } from "../../checked-codec.ts";
import { BadWireError, type Definition, type Zeros } from "../../codec.ts";
import { compensating } from "../../compensating.ts";
import { bitAt } from "../../shared/fields/fields.ts";
import { floats } from "../../shared/floats.ts";
import { checkNames, checkScaleGroups } from "../../shared/parameters.ts";
import { firstNotFinite, sumOfSquares } from "../../shared/reductions/reductions.ts";
import { fma } from "../../shared/rounding.ts";
import {
  type ScaleGroups,
  scaledWire,
  scaleGroupCount,
  scaleGroupsOf,
} from "../../shared/scale-groups/scale-groups.ts";
import { definition as sign } from "../sign/sign.ts";

export const definition: Definition = {
  name: "scaled-sign",
  implementation: "typescript",
  takes: { zero: true, hold: true },
  gradients: { chosen: { block: { means: "the elements that share a scale" } } },
  layout: () => ({ fieldBits: 1, scales: 1 }),
  wireBytes: (n, parameters) => 4 * scaleGroupCount(n, parameters) + Math.ceil(n / 8),

  encode(wire, x, parameters, call) {
    const values = floats(x);
    const bad = firstNotFinite(values);
    if (bad < values.length) return bad;

    const { fields, setScale } = scaledWire(wire, values.length, parameters);
    const signs = values.slice();
    for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
      const spoken = values.slice(begin, end);
      let count = end - begin;
      for (let i = begin; i < end; i++) {
        if (!bitAt(call.hold, i)) continue;
        spoken[i - begin] = 0;
        count--;
      }
      const scale = count === 0 ? 0 : Math.fround(Math.sqrt(sumOfSquares(spoken) / count));
      setScale(r, scale);
      if (scale === 0) signs.fill(-1, begin, end); // its bits are 0 for either sign of zero
    }
    return sign.encode(fields, signs, {}, call);
  },

  decodeAdd(sum, wire, parameters, { scale, hold }) {
    const sums = floats(sum);
    const { fields, good, ...scales } = scaledWire(wire, sums.length, parameters);
    if (!good()) return false;
    const one = Math.fround(scale);
    for (const [r, [begin, end]] of scaleGroupsOf(sums.length, parameters).entries()) {
      const magnitude = scales.scale(r);
      for (let i = begin; i < end; i++) {
        if (!bitAt(hold, i)) sums[i]! += Math.fround(one * (bitAt(fields, i) ? magnitude : -magnitude));
      }
    }
    return true;
  },

  encodeMomentum(wire, m, g, error, parameters, call) {
    const [momentum, gradient, x] = [floats(m), floats(g), floats(error)];
    const [keep, add] = [Math.fround(call.keep), Math.fround(call.add)];
    subtractSent(x, call);
    for (let i = 0; i < x.length; i++) x[i] = fma(add, gradient[i]!, fma(keep, momentum[i]!, x[i]!));
    return definition.encode(wire, x, parameters, call);
  },

  encodeSum(wire, wires, error, parameters, call) {
    const x = floats(error);
    if (!wires.every((one) => scaledWire(one, x.length, parameters).good())) return -1;
    subtractSent(x, call);
    for (const one of wires) definition.decodeAdd(x, one, parameters, call);
    return definition.encode(wire, x, parameters, call);
  },
};

/** x − sent sign(x), where sign(0) is 1, for the elements that are not masked. */
function subtractSent(x: Float32Array, { sent, hold }: Pick<SumCall, "sent" | "hold">): void {
  for (let i = 0; i < x.length; i++) if (!bitAt(hold, i)) x[i]! -= x[i]! >= 0 ? Math.fround(sent) : -Math.fround(sent);
}

/**
 * One bit per float, times the root of the scale group's mean square. The whole vector is one scale group unless
 * `block` (floats that share a scale) or `segments` (lengths of parts that do, together n) are given. Meant for
 * `encodeWithFeedback`.
 */
export function scaledSign(parameters: ScaleGroups = {}) {
  checkNames("scaled-sign", parameters, ["block", "segments"]);
  checkScaleGroups("scaled-sign", parameters);
  return compensating(definition, codec<Zeros>(definition, parameters));
}

/** The bits and the magnitude of a wire with one scale group. BadWireError for a magnitude that no encoder writes. */
export function readOneScale(wire: Uint8Array): { signs: Uint8Array; scale: number } {
  const { fields, scale, good } = scaledWire(wire, 1, {});
  if (!good())
    throw new BadWireError(
      `scaled-sign: the magnitude of a wire is ${scale(0)}, which no rank writes: it was damaged, or is no such wire.`,
    );
  return { signs: fields, scale: scale(0) };
}
