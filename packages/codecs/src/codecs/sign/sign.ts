/**
 * sign: one bit per float, 1 = plus.
 *
 *   bit i mod 8 of byte ⌊i/8⌋  =  x[i] > 0, or x[i] = 0 and zeros count as plus      (−0.0 is a zero)
 *   decoded                    =  +1 where the bit is 1, −1 where it is 0
 *
 * A masked element (bit 1 in `hold`, packed the same way) is written as 0 and decodes to nothing.
 * This file is the definition: sign.c, sign_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import type { Definition, Zeros } from "../../codec.ts";
import { bitAt } from "../../shared/fields/fields.ts";
import { floats } from "../../shared/floats.ts";

export const definition: Definition = {
  name: "sign",
  implementation: "typescript",
  takes: { zero: true, hold: true },
  gradients: { noFeedback: () => "sends no magnitude" },
  layout: () => ({ fieldBits: 1, scales: 0 }),
  wireBytes: (n) => Math.ceil(n / 8),

  encode(wire, x, _, { zero, hold }) {
    const values = floats(x);
    wire.fill(0);
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) return i;
      const plus = value > 0 || (value === 0 && zero === "plus");
      if (plus && !bitAt(hold, i)) wire[i >> 3]! |= 1 << (i & 7);
    }
    return values.length;
  },

  decodeAdd(sum, wire, _, { scale, hold }) {
    const sums = floats(sum);
    const one = Math.fround(scale);
    for (let i = 0; i < sums.length; i++) {
      if (!bitAt(hold, i)) sums[i]! += bitAt(wire, i) ? one : -one;
    }
    return true;
  },
};

/** One bit per float: which side of zero it is on. */
export const sign = codec<Zeros>(definition);
