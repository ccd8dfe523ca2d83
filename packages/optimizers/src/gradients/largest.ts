/** Codecs that keep a share of a vector's elements, the largest ones. */
import { type Codec, topK } from "@terse/codecs";
import { positiveFloat, v } from "@terse/options";

/** The share that is sent: more than 0, and at most 1. */
export const ratio = v.pipe(positiveFloat, v.maxValue(1));

/** top-k with k = ⌈ratio · n⌉. */
export function topOf(n: number, ratio: number): Codec {
  const k = Math.max(1, Math.ceil(ratio * n));
  const codec = known.get(k) ?? (topK({ k }) as Codec);
  known.set(k, codec);
  return codec;
}

const known = new Map<number, Codec>(); // by k: one for each size of layer
