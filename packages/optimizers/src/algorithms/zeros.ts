import { sign } from "@terse/codecs";
import type { Tensor } from "@terse/tensor";

/** Which elements of a variance are 0. */
export class Zeros {
  readonly hold: Uint8Array | undefined; // one bit an element, 1 where it is 0; undefined where none is
  readonly count: number;
  readonly #counts = new Map<number, number>(); // of parts, by where they begin

  /** The zeros of x ≥ 0. */
  static of(x: Tensor): Zeros {
    const words = new Uint32Array(Math.ceil(x.length / 32));
    const bits = new Uint8Array(words.buffer, 0, Math.ceil(x.length / 8));
    using here = x.to({ device: "cpu" }); // where codecs work
    sign.encode(bits, here, { zero: "minus" });
    for (let i = 0; i < words.length; i++) words[i] = ~words[i]!;
    const inLast = x.length % 32;
    if (inLast > 0) words[words.length - 1]! &= 2 ** inLast - 1;
    return new Zeros(bits);
  }

  private constructor(bits: Uint8Array) {
    this.count = onesOf(bits);
    this.hold = this.count > 0 ? bits : undefined;
  }

  /** The mask of the elements [begin, end), and how many are not 0. begin is a multiple of 8, and each has one end. */
  within(begin: number, end: number): { mask: Uint8Array | undefined; spoken: number } {
    const mask = maskOf(this.hold, begin, end);
    const count = this.#counts.get(begin) ?? (mask ? onesOf(mask) : 0);
    this.#counts.set(begin, count);
    return { mask, spoken: end - begin - count };
  }
}

/** The part of a mask for the elements [begin, end); begin is a multiple of 8. */
export const maskOf = (hold: Uint8Array | undefined, begin: number, end: number): Uint8Array | undefined =>
  hold?.subarray(begin / 8, Math.ceil(end / 8));

/** The number of bits that are 1. */
function onesOf(bytes: Uint8Array): number {
  let ones = 0;
  for (const byte of bytes) for (let left = byte; left !== 0; left &= left - 1) ones++;
  return ones;
}
