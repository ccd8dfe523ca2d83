import type { PackedBits } from "@terse/exchange";

const mostElements = 8192; // of a step
const mostWords = mostElements / 64;

/** The signs of some elements of a step's votes, at even distances: the same elements on every rank. */
export class VoteSample {
  readonly #words = new Map<number, Uint8Array[]>(); // by bucket, which every rank counts alike

  add(bucket: number, u: PackedBits): void {
    const words = Math.floor(u.length / 64); // whole words have no pad
    const each = Math.max(1, Math.ceil(words / mostWords));
    const sampled = this.#words.get(bucket) ?? [];
    for (let word = 0; word < words; word += each) sampled.push(u.wire.slice(8 * word, 8 * word + 8));
    this.#words.set(bucket, sampled);
  }

  /** 1 for plus and 0 for minus, in the order of the buckets; at most 8192. */
  plus(): Float32Array {
    const all = [...this.#words].sort(([a], [b]) => a - b).flatMap(([, words]) => words);
    const each = Math.max(1, Math.ceil(all.length / mostWords));
    const words = all.filter((_, i) => i % each === 0);
    return Float32Array.from({ length: 64 * words.length }, (_, i) => (words[i >> 6]![(i & 63) >> 3]! >> (i & 7)) & 1);
  }
}
