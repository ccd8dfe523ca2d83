/** Computes which windows of a text are used for training and validation. */
import { philox, wordsOf } from "@terse/codecs";

/**
 * The start of one row's window: uniform over 0 … starts − 1, and a pure function of (seed, step, row). `row` counts through the step's
 * global batch over all ranks, so the number of ranks does not matter, and a resumed run needs only its step. (2⁶⁴ values are mapped by the
 * high half of a product; the bias is below starts / 2⁶⁴.)
 */
export function trainingStart(seed: number, step: number, row: number, starts: number): number {
  const [high, low] = philox([...wordsOf(row), ...wordsOf(step)], wordsOf(seed));
  const uniform = (BigInt(high) << 32n) | BigInt(low);
  return Number((uniform * BigInt(starts)) >> 64n);
}

/** The starts of up to `count` windows of `length` bytes, evenly spread over `total` bytes, without overlaps. */
export function evenStarts(count: number, length: number, total: number): number[] {
  const most = Math.min(count, Math.floor(total / length));
  const last = total - length;
  return Array.from({ length: most }, (_, i) => (most === 1 ? 0 : Math.floor((i * last) / (most - 1))));
}

export interface Rows {
  readonly tokens: BigInt64Array; // (B, T), row by row
  readonly next: BigInt64Array; // (B, T): the byte after each token
}

/** The windows at `starts`: T = `blockSize` bytes each, and the T bytes that start one byte later. */
export function rowsAt(bytes: Uint8Array, starts: readonly number[], blockSize: number): Rows {
  const tokens = new BigInt64Array(starts.length * blockSize);
  const next = new BigInt64Array(starts.length * blockSize);
  // Writes the low 32 bits of each 64-bit token. Assumes a little-endian machine, as the wire and file formats do.
  const tokenWords = new Int32Array(tokens.buffer);
  const nextWords = new Int32Array(next.buffer);
  let at = 0;
  for (const start of starts)
    for (let t = 0; t < blockSize; t++, at += 2) {
      tokenWords[at] = bytes[start + t]!;
      nextWords[at] = bytes[start + t + 1]!;
    }
  return { tokens, next };
}
