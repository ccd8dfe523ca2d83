/**
 * ternary: −1, 0 or +1 per float, as two planes of bits: where x is plus, and where it is not zero.
 *
 *   bit i mod 8 of byte ⌊i/8⌋ of the first plane   =  x[i] > 0
 *   the same bit of the second plane               =  x[i] ≠ 0          (−0.0 is a zero)
 *   decoded                                        =  +1 where both are 1, −1 where only the second is, 0 elsewhere
 *
 * The planes are those of majorityOrZero. This file is the definition: ternary.c, ternary_avx2.c, … write the same
 * bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Definition } from "../../codec.ts";
import { bitAt } from "../../shared/fields/fields.ts";
import { floats } from "../../shared/floats.ts";

export const definition: Definition = {
  name: "ternary",
  implementation: "typescript",
  takes: {},
  gradients: { noFeedback: () => "sends no magnitude" },
  wireBytes: (n) => 2 * Math.ceil(n / 8),

  encode(wire, x) {
    const values = floats(x);
    const [plus, nonzero] = planes(wire);
    wire.fill(0);
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) return i;
      if (value > 0) plus[i >> 3]! |= 1 << (i & 7);
      if (value !== 0) nonzero[i >> 3]! |= 1 << (i & 7);
    }
    return values.length;
  },

  decodeAdd(sum, wire, _, { scale }) {
    const sums = floats(sum);
    const [plus, nonzero] = planes(wire);
    const one = Math.fround(scale);
    for (let i = 0; i < sums.length; i++) {
      const value = bitAt(nonzero, i) ? (bitAt(plus, i) ? 1 : -1) : 0;
      sums[i]! += one * value;
    }
    return true;
  },
};

/** Two bits per float: minus, zero or plus. */
export const ternary = codec<Record<never, never>>(definition);

const planes = (wire: Uint8Array): [plus: Uint8Array, nonzero: Uint8Array] => [
  wire.subarray(0, wire.length / 2),
  wire.subarray(wire.length / 2),
];
