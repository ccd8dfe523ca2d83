/**
 * int8: a whole number from −127 to 127 a float, in steps of a 127th of the scale group's largest magnitude.
 *
 *   scale[r]  = max |x[i]| of scale group r
 *   q[i]      = round(x[i] · (127/scale)), a tie to the even one; 0 where scale is 0
 *   decoded   = fp32(q · (scale/127))
 *
 * The wire: scales, one fp32 per scale group, then a byte per float in two's complement. Scaling is in fp64.
 * This file is the definition: int8.c, int8_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Definition } from "../../codec.ts";
import { floats } from "../../shared/floats.ts";
import { summableLevels } from "../../shared/levels/levels.ts";
import { checkNames, checkScaleGroups } from "../../shared/parameters.ts";
import { firstNotFinite, largest } from "../../shared/reductions/reductions.ts";
import { roundHalfEven } from "../../shared/rounding.ts";
import {
  type ScaleGroups,
  scaledWire,
  scaleGroupCount,
  scaleGroupsOf,
} from "../../shared/scale-groups/scale-groups.ts";
import { l1 } from "../l1/l1.ts";

export const definition: Definition = {
  name: "int8",
  implementation: "typescript",
  takes: {},
  gradients: { chosen: { block: { means: "the elements that share a scale" } } },
  layout: () => ({ fieldBits: 8, scales: 1 }),
  summable: (parameters) => summableLevels(8, 1, parameters, l1),
  wireBytes: (n, parameters) => 4 * scaleGroupCount(n, parameters) + n,

  scales(scales, x, parameters) {
    const values = floats(x);
    for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries())
      scales[r] = largest(values.subarray(begin, end));
    return firstNotFinite(values);
  },

  encode(wire, x, parameters) {
    const values = floats(x);
    const bad = firstNotFinite(values);
    if (bad < values.length) return bad;
    const { fields, setScale } = scaledWire(wire, values.length, parameters);
    for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
      const scale = largest(values.subarray(begin, end));
      const levels = scale === 0 ? 0 : 127 / scale; // a unit of x
      setScale(r, scale);
      for (let i = begin; i < end; i++) fields[i] = roundHalfEven(values[i]! * levels); // modulo 256
    }
    return values.length;
  },

  decodeAdd(sum, wire, parameters, { scale }) {
    const sums = floats(sum);
    const { fields, good, ...scales } = scaledWire(wire, sums.length, parameters);
    if (!good()) return false;
    const decoded = new Float32Array(sums.length);
    for (const [r, [begin, end]] of scaleGroupsOf(sums.length, parameters).entries()) {
      const step = scales.scale(r) / 127;
      for (let i = begin; i < end; i++) decoded[i] = signed(fields[i]!) * step;
    }
    if (firstNotFinite(decoded) < decoded.length) return false; // −128, which no encoder writes, times a largest step
    const one = Math.fround(scale);
    for (let i = 0; i < sums.length; i++) sums[i]! += Math.fround(decoded[i]! * one);
    return true;
  },
};

/**
 * One byte per float. The whole vector shares a scale unless `block` (floats that share one) or `segments` (lengths of
 * parts that do, together n) are given.
 */
export function int8(parameters: ScaleGroups = {}) {
  checkNames("int8", parameters, ["block", "segments"]);
  checkScaleGroups("int8", parameters);
  return codec<Record<never, never>>(definition, parameters);
}

const signed = (byte: number): number => (byte < 128 ? byte : byte - 256);
