/**
 * count: the number of ranks that vote plus. Each rank writes one number per field, and the wire sums the fields of all
 * ranks. Ishikawa et al. 2024, "Lion Cub", https://arxiv.org/abs/2411.16462, §6: "we map {−1, 1} ↦ {0, 1}, which saves
 * one bit per value".
 *
 *   1 bit        field = 1 where x > 0, or x = 0 and zeros count as plus;    decoded = 2 c − ranks
 *   2 … 8 bits   field = x + s, x whole from −s to s, s = 2^(bits − 1) − 1;  decoded = c − ranks · s
 *   c            the field, or the sum of fields
 *
 * Any sum of unsigned bytes (or of 16-bit words) adds them: ranks (2^bits − 1) ≤ 2^width − 1, so no field overflows
 * into the next. This file is the definition: count.c, count_avx2.c, … write the same bytes.
 */
import type { Parameters } from "@terse/native-codecs";
import { codec } from "../../checked-codec.ts";
import type { Codec, Definition, Zeros } from "../../codec.ts";
import { checkedFields, field, fieldBytes, setField, widthOf } from "../../shared/fields/fields.ts";
import { floats } from "../../shared/floats.ts";
import { checkNames, checkWhole } from "../../shared/parameters.ts";

export const definition: Definition = {
  name: "count",
  implementation: "typescript",
  takes: { zero: true },
  layout: (parameters) => ({ fieldBits: widthOf(parameters), scales: 0 }),
  wireBytes: (n, parameters) => fieldBytes(n, widthOf(parameters)),

  encode(wire, x, parameters, { zero }) {
    const values = floats(x);
    const width = widthOf(parameters);
    const { one, s } = levelsOf(parameters);
    wire.fill(0);
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (one) {
        if (!Number.isFinite(value)) return i;
        setField(wire, i, width, value > 0 || (value === 0 && zero === "plus") ? 1 : 0);
      } else {
        if (!(Number.isInteger(value) && Math.abs(value) <= s)) return i;
        setField(wire, i, width, value + s);
      }
    }
    return values.length;
  },

  decodeAdd(sum, wire, parameters, { scale }) {
    const sums = floats(sum);
    const width = widthOf(parameters);
    const { one, s } = levelsOf(parameters);
    const ranks = parameters.ranks ?? 1;
    for (let i = 0; i < sums.length; i++) {
      const c = field(wire, i, width);
      sums[i]! += Math.fround(Math.fround(one ? 2 * c - ranks : c - ranks * s) * Math.fround(scale));
    }
    return true;
  },
};

const levelsOf = ({ bits = 1 }: Parameters) => ({ one: bits === 1, s: 2 ** (bits - 1) - 1 });

/** Parameters of `count`. */
export interface CountParameters {
  /** Bits of one number, 1 to 8; 1, which is signs, unless given. */
  readonly bits?: number | undefined;
  /** Bits of a field: 2, 4, 8 or 16; the narrowest with room for the sum of all ranks unless given. */
  readonly width?: number | undefined;
  /** How many wires are summed. */
  readonly ranks: number;
}

/**
 * Signs, or small whole numbers, in fields that can be summed. Ishikawa et al. 2024, §6. A wrong parameter is a
 * ParameterError, and more ranks than the widest field can sum a SumTooWideError.
 */
export function count(parameters: CountParameters): Codec<Zeros> {
  checkNames("count", parameters, ["bits", "width", "ranks"]);
  const { bits = 1, ranks } = parameters;
  checkWhole("count", "bits", bits, 1, 8);
  checkWhole("count", "ranks", ranks, 1, 2 ** 32 - 1);
  return codec(definition, checkedFields("count", parameters, [2, 4, 8, 16]));
}
