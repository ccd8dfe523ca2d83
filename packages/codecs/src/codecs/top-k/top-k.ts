/**
 * top-k: the k floats of largest magnitude, with their places; the others are 0.
 *
 *   indices   k, ascending, ⌈log₂ n⌉ bits each, to whole bytes
 *   values    k fp32
 *
 * Of equal magnitudes the earlier is kept. This file is the definition: top_k.c, top_k_avx2.c, … write the same bytes.
 */
import { type Codec, codec, type Definition, floats } from "../../codec.ts";
import { indexBytes, largest, readChosen, writeChosen } from "../../shared/indices/indices.ts";
import { checkNames, checkWhole } from "../../shared/parameters.ts";

export const definition: Definition = {
  name: "top-k",
  implementation: "typescript",
  takes: {},
  gradients: {
    chosen: { k: { means: "the share of elements that is sent, such as 0.01", needed: true, asShare: "ratio" } },
  },
  kept: (n, { k }) => [{ length: n, k: k!, at: 0 }],

  // Each part keeps its share, so that all of them together keep k, or a few more.
  partParameters: ({ k }, begin, end, n) => ({ k: Math.max(1, Math.ceil((k! * (end - begin)) / n)) }),

  wireBytes(n, { k }) {
    if (k! > n)
      throw new RangeError(`top-k: k is ${k}, and of ${n} floats at most ${n} can be kept; take a smaller k.`);
    return indexBytes(k!, n) + 4 * k!;
  },

  encode(wire, x, { k }) {
    const values = floats(x);
    const bad = values.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) return bad;
    writeChosen(wire, largest(values, k!), values);
    return values.length;
  },

  decodeAdd(sum, wire, { k }, { scale }) {
    const sums = floats(sum);
    const chosen = readChosen(wire, k!, sums.length);
    for (const [i, value] of chosen ?? []) sums[i]! += Math.fround(Math.fround(scale) * value);
    return chosen !== undefined;
  },
};

/**
 * The k floats of largest magnitude, with their places. k is 1 or more, and at most the number of floats (RangeError).
 */
export function topK(parameters: { readonly k: number }): Codec {
  checkNames("top-k", parameters, ["k"]);
  checkWhole("top-k", "k", parameters.k, 1);
  return codec(definition, parameters);
}
