/**
 * Levels: the part that l1, linf and qsgd share. One scale per scale group, then one level q per field, from −s to s,
 * written as q + s.
 *
 *   s = 2^(bits − 1) − 1, or fewer: `side`        level s stands for reach · scale
 *   wire: scales (fp32, one per scale group; none where unscaled), then the fields
 *
 * Unscaled wires can be summed: the fields of all ranks add up to Σ q + ranks · s, which decodes to the whole number
 * Σ q. The ranks may also agree on units, one per scale group. Then q = x / unit, clamped to ± s, and the sum decodes
 * to fp32((Σ q) · unit); 0 where the unit is 0.
 */
import type { EncodeCall, Parameters } from "@terse/native-codecs";
import type { Codec, Definition, OfGradients, Summable, Takes } from "../../codec.ts";
import { checkedFields, field, fieldBytes, setField, widthOf } from "../fields/fields.ts";
import { floats } from "../floats.ts";
import { checkNames, checkScaleGroups, checkWhole } from "../parameters.ts";
import { firstNotFinite, largest } from "../reductions/reductions.ts";
import { largestFloat } from "../rounding.ts";
import { type ScaleGroups, scaledWire, scaleGroupCount, scaleGroupsOf } from "../scale-groups/scale-groups.ts";

export interface Levels {
  readonly name: string;
  readonly takes: Takes;
  readonly gradients: OfGradients;
  readonly reach: number;
  /** See `Codec.summable`. */
  summable(parameters: Parameters): Summable | undefined;
  /** The scale of a scale group that is not empty, before rounding to fp32; not finite if an element is not. */
  scaleOf(x: Float32Array): number;
  /**
   * level(value, i) for a scale group with this scale, which is more than 0; i is the index in the whole vector. With
   * call.units `scale` is the unit: the value of one level.
   */
  quantiser(scale: number, s: number, parameters: Parameters, call: EncodeCall): (value: number, i: number) => number;
  /** The value of level q; q · reach · scale / s unless given. */
  standsFor?(q: number, scale: number, s: number, parameters: Parameters): number;
}

// @__NO_SIDE_EFFECTS__
export function levels({ name, takes, gradients, reach, summable, scaleOf, quantiser, standsFor }: Levels): Definition {
  const canBeAScale = (scale: number): boolean => scale >= 0 && scale * reach <= largestFloat;

  const scaleOfGroup = (group: Float32Array): number => (group.length === 0 ? 0 : Math.fround(scaleOf(group)));

  return {
    name,
    implementation: "typescript",
    takes,
    gradients,
    layout: (parameters) => ({ fieldBits: widthOf(parameters), scales: parameters.unscaled ? 0 : 1 }),
    summable,

    wireBytes(n, parameters) {
      const groups = scaleGroupCount(n, parameters); // checks the segments, also if there are no scales
      return (parameters.unscaled ? 0 : 4 * groups) + fieldBytes(n, widthOf(parameters));
    },

    encode(wire, x, parameters, call) {
      const values = floats(x);
      const s = levelsASide(parameters);
      const scaled = parameters.unscaled ? undefined : scaledWire(wire, values.length, parameters);
      wire.fill(0);
      for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
        const group = values.subarray(begin, end);
        const scale = call.units ? call.units[r]! : scaleOfGroup(group);
        if (call.units ? firstNotFinite(group) < group.length : !canBeAScale(scale)) return begin + firstRefused(group);
        scaled?.setScale(r, scale);
        const level = scale > 0 ? quantiser(scale, s, parameters, call) : () => 0;
        for (let i = begin; i < end; i++)
          setField(scaled?.fields ?? wire, i, widthOf(parameters), level(values[i]!, i) + s);
      }
      return values.length;
    },

    decodeAdd(sum, wire, parameters, call) {
      const sums = floats(sum);
      const s = levelsASide(parameters);
      const width = widthOf(parameters);
      const by = Math.fround(call.scale);
      const groups = scaleGroupsOf(sums.length, parameters);
      if (parameters.unscaled) {
        const none = (parameters.ranks ?? 1) * s;
        for (const [r, [begin, end]] of groups.entries()) {
          const unit = call.units?.[r] ?? 1;
          for (let i = begin; i < end; i++)
            sums[i]! += Math.fround(Math.fround((field(wire, i, width) - none) * unit) * by);
        }
        return true;
      }
      const scaled = scaledWire(wire, sums.length, parameters);
      if (!groups.every((_, r) => canBeAScale(scaled.scale(r)))) return false;
      for (const [r, [begin, end]] of groups.entries()) {
        const scale = scaled.scale(r);
        for (let i = begin; i < end; i++) {
          const q = Math.min(field(scaled.fields, i, width), 2 * s) - s; // no encoder writes a field above 2 s
          const value = standsFor ? standsFor(q, scale, s, parameters) : q * ((reach * scale) / s);
          sums[i]! += Math.fround(Math.fround(value) * by);
        }
      }
      return true;
    },

    scales(scales, x, parameters) {
      const values = floats(x);
      for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
        scales[r] = scaleOfGroup(values.subarray(begin, end));
        if (!canBeAScale(scales[r]!)) return begin + firstRefused(values.subarray(begin, end));
      }
      return values.length;
    },
  };
}

/** `bits` and `reach` as in Summable; `make` is the factory of the codec that writes these levels unscaled. */
export const summableLevels = (
  bits: number,
  reach: number,
  { side, block, segments }: Parameters,
  make: (parameters: SummableParameters) => Codec<never>,
): Summable => ({
  bits,
  s: levelsASide({ bits, side }),
  reach,
  codec: (ranks) => make({ bits, ...(side && { side }), block, segments, unscaled: true, ranks }) as Codec<object>,
});

interface SummableParameters extends ScaleGroups {
  readonly bits: number;
  readonly side?: number;
  readonly unscaled: true;
  readonly ranks: number;
}

const levelsASide = ({ bits, side }: Parameters): number => side ?? 2 ** (bits! - 1) - 1;

/** The first NaN or infinity; if there is none, the largest element, whose magnitude makes the scale overflow fp32. */
function firstRefused(x: Float32Array): number {
  const bad = firstNotFinite(x);
  const most = largest(x);
  return bad < x.length ? bad : x.findIndex((value) => Math.abs(value) === most);
}

/** Checks the parameters of a codec of levels; adds the narrowest width with room if none is given. */
export function checkedLevels<P extends Parameters>(codec: string, parameters: P, taken: readonly string[]): P {
  checkNames(codec, parameters, taken);
  checkWhole(codec, "bits", parameters.bits!, 2, 8);
  if (parameters.side !== undefined)
    checkWhole(codec, "side", parameters.side, 1, levelsASide({ bits: parameters.bits }));
  if (!["undefined", "boolean"].includes(typeof parameters.unscaled))
    throw new TypeError(`${codec}: unscaled is ${String(parameters.unscaled)}, and must be true or false.`);
  checkScaleGroups(codec, parameters);
  if ((parameters.ranks ?? 1) > 1 && !parameters.unscaled)
    throw new RangeError(
      `${codec}: ranks is ${parameters.ranks}, and only unscaled wires can be summed: set unscaled too, or leave ranks out.`,
    );
  const { bits } = parameters;
  return checkedFields(
    codec,
    parameters,
    [...new Set([bits!, 4, 8, 16])].sort((a, b) => a - b),
  );
}
