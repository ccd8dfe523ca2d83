/**
 * top-k: the k floats of largest magnitude, with their places; the others are 0.
 *
 *   table     of values in 2 bits four fp32, of signs one, otherwise none
 *   indices   k, ascending: ⌈log₂ n⌉ bits each, or Elias–Fano's, to whole bytes
 *   values    k: fp32, halves, 2 bits or signs, to whole bytes
 *
 * Of equal magnitudes the earlier is kept. This file is the definition, with shared/indices/indices.ts and
 * kept-values.ts: top_k.c, top_k_avx2.c, … write the same bytes.
 */
import type { Parameters } from "@terse/native-codecs";
import { codec } from "../../checked-codec.ts";
import type { Codec, Definition } from "../../codec.ts";
import { floats } from "../../shared/floats.ts";
import {
  type Indices,
  indexBytes,
  indexCodings,
  largest,
  readIndices,
  writeIndices,
} from "../../shared/indices/indices.ts";
import { checkChoice, checkNames, checkWhole } from "../../shared/parameters.ts";
import { firstNotFinite } from "../../shared/reductions/reductions.ts";
import { readValues, tableBytes, type Values, valueBytes, valueCodings, writeValues } from "./kept-values.ts";

export const definition: Definition = {
  name: "top-k",
  implementation: "typescript",
  takes: {},
  gradients: {
    chosen: {
      k: { means: "the share of elements that is sent, such as 0.01", needed: true, asShare: "ratio" },
      indices: { means: "how their indices are written", choices: indexCodings },
      values: { means: "how their values are written", choices: valueCodings },
    },
  },
  kept: (n, { k, indices, values }) => [{ length: n, k: k!, at: tableBytes(values), indices, values }],

  // Each part keeps its share, so that all of them together keep k, or a few more.
  partParameters: ({ k, ...others }, begin, end, n) => ({
    ...others,
    k: Math.max(1, Math.ceil((k! * (end - begin)) / n)),
  }),

  wireBytes(n, { k, indices, values }) {
    if (k! > n)
      throw new RangeError(`top-k: k is ${k}, and of ${n} floats at most ${n} can be kept; take a smaller k.`);
    return tableBytes(values) + indexBytes(k!, n, indices) + valueBytes(k!, values);
  },

  encode(wire, x, { k, indices, values }) {
    const all = floats(x);
    const bad = firstNotFinite(all);
    if (bad < all.length) return bad;
    const chosen = largest(all, k!);
    const refused = writeValues(
      wire,
      Float32Array.from(chosen, (i) => all[i]!),
      values,
    );
    if (refused < k!) return chosen[refused]!;
    writeIndices(wire.subarray(tableBytes(values)), chosen, all.length, indices);
    return all.length;
  },

  decodeAdd(sum, wire, { k, indices, values }, { scale }) {
    const sums = floats(sum);
    const chosen = readIndices(wire.subarray(tableBytes(values)), k!, sums.length, indices);
    const kept = chosen && readValues(wire, k!, values);
    if (!chosen || !kept) return false;
    for (const [j, i] of chosen.entries()) sums[i]! += Math.fround(Math.fround(scale) * kept[j]!);
    return true;
  },
};

export interface TopKParameters {
  /** How many floats are kept: 1 or more, and at most the number of floats (RangeError). */
  readonly k: number;
  /** How their indices are written: "fixed" unless given; "elias-fano" is shorter. */
  readonly indices?: Indices | undefined;
  /** How their values are written: "f32" unless given. The others round them, so use `encodeWithFeedback`. */
  readonly values?: Values | undefined;
}

/** The k floats of largest magnitude, with their places. */
export function topK(parameters: TopKParameters): Codec {
  checkNames("top-k", parameters as unknown as Parameters, ["k", "indices", "values"]);
  const { k, indices, values } = parameters;
  checkWhole("top-k", "k", k, 1);
  if (indices !== undefined) checkChoice("top-k", "indices", indices, indexCodings);
  if (values !== undefined) checkChoice("top-k", "values", values, valueCodings);
  return codec(definition, parameters);
}
