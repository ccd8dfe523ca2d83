import { philox, wordsOf } from "@terse/codecs";
import { empty, fromTypedArray, type Tensor } from "@terse/tensor";

/**
 * n floats, uniform in [−1, 1), with the same bits on every rank and processor, which libtorch's generators do not
 * promise. Another `stream` of the same seed gives others.
 */
export function randomFloats(n: number, { seed, stream }: { seed: number; stream: number }): Float32Array {
  const values = new Float32Array(n);
  for (let i = 0; i < n; i += 4) {
    const words = philox([...wordsOf(i / 4), ...wordsOf(stream)], wordsOf(seed));
    for (const [k, word] of words.entries()) values[i + k] = (word >>> 8) / 2 ** 23 - 1; // past the end: ignored
  }
  return values;
}

/**
 * A matrix of random floats. On the device "meta", where a dry run has only shapes, nothing is drawn: that would take
 * seconds for a large model.
 */
export function randomMatrix(
  [rows, columns]: readonly [number, number],
  { seed, stream, device }: { seed: number; stream: number; device: string },
): Tensor {
  if (device === "meta") return empty([rows, columns], { device });
  return fromTypedArray(randomFloats(rows * columns, { seed, stream }), [rows, columns], { device });
}
