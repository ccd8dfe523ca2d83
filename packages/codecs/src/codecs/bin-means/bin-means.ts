/**
 * bin-means: m = 2^bits values a scale group, the means of m equal bins, and for each float the index of the nearest.
 *
 *   rms       = √(mean x²)                                     of the scale group, in fp64
 *   bin       = clamp(⌊x · (m / (6 rms)) + m / 2⌋, 0, m − 1)    m equal bins over ± 3 rms; the outer two reach to ± ∞
 *   table[b]  = fp32(the mean of the x in bin b)               the middle of b, (b + 1/2) (6 rms / m) − 3 rms, if it is empty
 *   q         = how many of the m − 1 midpoints (table[k] + table[k + 1]) / 2 are less than x
 *   wire      = the tables, m fp32 per scale group, then q in fields;  decoded = table[q]
 *
 * So q is the index of the nearest entry, and of the lower one where two are equally near. The bins are those of
 * SparseLoCo, Sarfi et al. 2025, https://arxiv.org/abs/2508.15706, around 0, which sends the bin itself: where bins are
 * unevenly full, another bin's mean may be nearer. It is one step of Lloyd's algorithm, Lloyd 1982, "Least Squares
 * Quantization in PCM". This file is the definition: bin_means.c, bin_means_avx2.c, … write the same bytes.
 */
import type { Parameters } from "@terse/native-codecs";
import { codec } from "../../checked-codec.ts";
import type { Definition } from "../../codec.ts";
import { field, fieldBytes, setField } from "../../shared/fields/fields.ts";
import { floats } from "../../shared/floats.ts";
import { meansOfBins } from "../../shared/means-of-bins/means-of-bins.ts";
import { checkNames, checkScaleGroups, checkWhole } from "../../shared/parameters.ts";
import { firstNotFinite, sumOfSquares } from "../../shared/reductions/reductions.ts";
import { largestFloat } from "../../shared/rounding.ts";
import { type ScaleGroups, scaleGroupCount, scaleGroupsOf } from "../../shared/scale-groups/scale-groups.ts";

const most = 4; // bits

export const definition: Definition = {
  name: "bin-means",
  implementation: "typescript",
  takes: {},
  gradients: {
    chosen: {
      bits: { means: "the bits of an element" },
      block: { means: "the elements that share a table" },
    },
  },
  layout: ({ bits }) => ({ fieldBits: bits!, scales: 2 ** bits! }),
  wireBytes: (n, parameters) => tableBytes(n, parameters) + fieldBytes(n, parameters.bits!),

  encode(wire, x, parameters) {
    const values = floats(x);
    const bad = firstNotFinite(values);
    if (bad < values.length) return bad;
    wire.fill(0);
    const [tables, fields] = parts(wire, values.length, parameters);
    const m = 2 ** parameters.bits!;
    for (const [r, [begin, end]] of scaleGroupsOf(values.length, parameters).entries()) {
      const table = tableOf(values.subarray(begin, end), m);
      for (const [b, entry] of table.entries()) tables.setFloat32(4 * (m * r + b), entry, true);
      const midpoints = Array.from({ length: m - 1 }, (_, k) => (table[k]! + table[k + 1]!) / 2);
      for (let i = begin; i < end; i++)
        setField(fields, i, parameters.bits!, midpoints.filter((midpoint) => midpoint < values[i]!).length);
    }
    return values.length;
  },

  decodeAdd(sum, wire, parameters, { scale }) {
    const sums = floats(sum);
    const [tables, fields] = parts(wire, sums.length, parameters);
    const m = 2 ** parameters.bits!;
    const entries = Array.from({ length: tables.byteLength / 4 }, (_, at) => tables.getFloat32(4 * at, true));
    if (!entries.every(Number.isFinite)) return false;
    for (const [r, [begin, end]] of scaleGroupsOf(sums.length, parameters).entries())
      for (let i = begin; i < end; i++)
        sums[i]! += Math.fround(Math.fround(scale) * entries[m * r + field(fields, i, parameters.bits!)]!);
    return true;
  },
};

/** Zeros for a group of zeros, and for an empty segment. */
function tableOf(group: Float32Array, m: number): Float32Array {
  const rms = group.length === 0 ? 0 : Math.sqrt(sumOfSquares(group) / group.length);
  if (rms === 0) return new Float32Array(m);
  const perFloat = m / (6 * rms);
  const binOf = Array.from(group, (x) => Math.max(0, Math.min(m - 1, Math.floor(x * perFloat + m / 2))));
  const middle = (bin: number) => {
    const value = (bin + 0.5) * ((6 * rms) / m) - 3 * rms;
    return Math.max(-largestFloat, Math.min(largestFloat, value));
  };
  return Float32Array.from(meansOfBins(group, binOf, m, middle));
}

const tableBytes = (n: number, parameters: Parameters) => 4 * 2 ** parameters.bits! * scaleGroupCount(n, parameters);

function parts(wire: Uint8Array, n: number, parameters: Parameters): [tables: DataView, fields: Uint8Array] {
  const bytes = tableBytes(n, parameters);
  return [new DataView(wire.buffer, wire.byteOffset, bytes), wire.subarray(bytes)];
}

/** Parameters of `binMeans`. */
export interface BinMeansParameters extends ScaleGroups {
  /** Bits of one float, 2 to 4: the wire has 2^bits values for each scale group. 4 unless given. */
  readonly bits?: number | undefined;
}

/**
 * The index of the nearest of 2^bits values, which are the means of bins. The whole vector shares them unless `block`
 * or `segments` are given. A wrong parameter is a ParameterError.
 */
export function binMeans(given: BinMeansParameters = {}) {
  checkNames("bin-means", given, ["bits", "block", "segments"]);
  const parameters = { ...given, bits: given.bits ?? most };
  checkWhole("bin-means", "bits", parameters.bits, 2, most);
  checkScaleGroups("bin-means", parameters);
  return codec<Record<never, never>>(definition, parameters);
}
