/**
 * A seeded permutation of 0 … n − 1 that is computed for one number at a time and needs no memory: a Feistel network of
 * six rounds on the numbers below 4ᵏ ≥ n, whose round function is Philox. Where its result is n or more it is applied
 * again (cycle walking). Black and Rogaway 2002, "Ciphers with arbitrary finite domains", §2 and §3,
 * https://doi.org/10.1007/3-540-45760-7_9
 */
import { philox, wordsOf } from "@terse/codecs";
import { purposes } from "./random.ts";

const rounds = 6;

/** The `i`-th number of the permutation of 0 … n − 1 that belongs to (seed, epoch). n ≤ 2⁵². */
export function permuted(i: number, n: number, seed: number, epoch: number): number {
  let bits = 1; // of each half
  while (4 ** bits < n) bits++;
  const half = 2 ** bits;
  const key = wordsOf(seed);
  const [low, high] = wordsOf(epoch);
  let x = i;
  do {
    let [left, right] = [Math.floor(x / half), x % half];
    for (let round = 0; round < rounds; round++) {
      const counter = [right, low, high, (purposes.order << 24) | round] as const;
      const mask = philox(counter, key)[0] & (half - 1);
      [left, right] = [right, (left ^ mask) >>> 0];
    }
    x = left * half + right;
  } while (x >= n);
  return x;
}
