import { philox, wordsOf } from "@terse/codecs";

/**
 * n floats, uniform in [−1, 1), the same bits on every rank and processor, which libtorch's generators do not promise. Another `stream` of
 * the same seed gives others.
 */
export function randomFloats(n: number, { seed, stream }: { seed: number; stream: number }): Float32Array {
  const values = new Float32Array(n);
  for (let i = 0; i < n; i += 4) {
    const words = philox([...wordsOf(i / 4), ...wordsOf(stream)], wordsOf(seed));
    for (const [k, word] of words.entries()) values[i + k] = (word >>> 8) / 2 ** 23 - 1; // past the end: ignored
  }
  return values;
}
