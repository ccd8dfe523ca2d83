import { sign } from "@terse/codecs";
import type { Tensor } from "@terse/tensor";

/** Which elements of a variance are 0. */
export interface Zeros {
  readonly hold: Uint8Array | undefined; // one bit an element, 1 where it is 0; undefined where none is
}

/** The zeros of x ≥ 0. */
export function zerosIn(x: Tensor): Zeros {
  const words = new Uint32Array(Math.ceil(x.length / 32));
  const bits = new Uint8Array(words.buffer, 0, Math.ceil(x.length / 8));
  using here = x.to({ device: "cpu" }); // where codecs work
  sign.encode(bits, here, { zero: "minus" });
  for (let i = 0; i < words.length; i++) words[i] = ~words[i]!;
  const inLast = x.length % 32;
  if (inLast > 0) words[words.length - 1]! &= 2 ** inLast - 1;
  return { hold: words.some((word) => word !== 0) ? bits : undefined };
}

/** The part of a mask for the elements [begin, end); begin is a multiple of 8. */
export const maskOf = (hold: Uint8Array | undefined, begin: number, end: number): Uint8Array | undefined =>
  hold?.subarray(begin / 8, Math.ceil(end / 8));
