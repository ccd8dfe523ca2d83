/**
 * 16-bit floats on the wire, little-endian: a sign, an exponent, and a fraction of p bits.
 *
 *   e     the power of two at or below |x|, and at least the least exponent of a normal number
 *   m     |x| / 2^(e − p), rounded half to even:  2^p … 2^(p+1) for normal numbers, less for denormals
 *   half  sign, then (e − least) 2^p + m          m's leading one moves the exponent to where IEEE 754 counts from
 *
 * bf16 and f16 differ only in p and the least exponent. Numbers that would round to infinity are refused, and so is a
 * wire with infinity or NaN.
 */
import type { Definition } from "../../codec.ts";
import { floats } from "../floats.ts";
import { roundHalfEven } from "../rounding.ts";

export interface HalfFormat {
  readonly name: string;
  /** p */
  readonly fraction: number;
  /** The least exponent of a normal number: −126 for bf16, −14 for f16. */
  readonly least: number;
}

// @__NO_SIDE_EFFECTS__
export function halves({ name, fraction, least }: HalfFormat): Definition {
  const one = 2 ** fraction; // 2^p
  const infinity = 0x8000 - one; // all bits of the exponent

  const half = (x: number): number => {
    const e = Math.max(exponentOf(x), least);
    return (e - least) * one + roundHalfEven(Math.abs(x) / 2 ** (e - fraction));
  };

  const value = (bits: number): number => {
    const exponent = Math.floor((bits & 0x7fff) / one);
    const m = (bits % one) + (exponent === 0 ? 0 : one);
    return (bits & 0x8000 ? -m : m) * 2 ** (Math.max(exponent, 1) - 1 + least - fraction);
  };

  return {
    name,
    implementation: "typescript",
    takes: {},
    gradients: {},
    layout: () => ({ fieldBits: 16, scales: 0 }),
    wireBytes: (n) => 2 * n,

    encode(wire, x) {
      const values = floats(x);
      for (let i = 0; i < values.length; i++) {
        const bits = half(values[i]!);
        if (!(bits < infinity)) return i;
        wire[2 * i] = bits & 0xff;
        wire[2 * i + 1] = (bits >> 8) | (isMinus(values[i]!) ? 0x80 : 0);
      }
      return values.length;
    },

    decodeAdd(sum, wire, _, { scale }) {
      const sums = floats(sum);
      const s = Math.fround(scale);
      const bits = (i: number): number => wire[2 * i]! | (wire[2 * i + 1]! << 8);
      for (let i = 0; i < sums.length; i++) if ((bits(i) & infinity) === infinity) return false;
      for (let i = 0; i < sums.length; i++) sums[i]! += Math.fround(value(bits(i)) * s);
      return true;
    },
  };
}

const word = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(4));

/** The exponent of the power of two at or below |x| in fp32; −127 for denormals and 0, 128 for NaN and infinity. */
function exponentOf(x: number): number {
  word.setFloat32(0, x);
  return ((word.getUint32(0) >>> 23) & 0xff) - 127;
}

const isMinus = (x: number): boolean => x < 0 || Object.is(x, -0);
