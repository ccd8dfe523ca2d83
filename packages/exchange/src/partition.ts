import { wordsOf } from "./packed-bits.ts";

/**
 * The words of a packed vector that each rank owns in a vote: rank r owns words [starts[r], starts[r + 1]). Parts
 * differ by at most one word and may be empty. All ranks compute the same starts.
 */
export function partition(n: number, ranks: number): number[] {
  const words = wordsOf(n);
  return Array.from({ length: ranks + 1 }, (_, r) => Math.floor((r * words) / ranks));
}

/** The words of `wire` that each rank owns, as views. */
export function parts(wire: Uint8Array, starts: readonly number[]): Uint8Array[] {
  return starts.slice(1).map((end, r) => wire.subarray(8 * starts[r]!, 8 * end));
}

/** The bytes of a chunk of words that hold its first n signs. */
export function signsOf(chunk: Uint8Array, n: number): Uint8Array {
  return chunk.subarray(0, Math.ceil(n / 8));
}

/** The number of elements in rank r's words, of n in all; the last words may hold pad bits. */
export function elementsOf(n: number, starts: readonly number[], r: number): number {
  return Math.max(0, Math.min(n, 64 * starts[r + 1]!) - 64 * starts[r]!);
}

/** The bytes of each rank's words. */
export function partBytes(starts: readonly number[]): number[] {
  return starts.slice(1).map((end, r) => 8 * (end - starts[r]!));
}
