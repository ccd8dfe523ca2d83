/**
 * Random words as a function of (seed, step, element), without a state to keep or save: Philox4x32-10. Salmon, Moraes,
 * Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", https://doi.org/10.1145/2063384.2063405
 *
 *   (c₀, c₁, c₂, c₃) ← (hi(M₁ c₂) ⊕ c₁ ⊕ k₀, lo(M₁ c₂), hi(M₀ c₀) ⊕ c₃ ⊕ k₁, lo(M₀ c₀))     ten times,
 *   (k₀, k₁)         ← (k₀ + W₀, k₁ + W₁)                                                    between the rounds
 *
 *   key = seed, counter = (c, step) with c = 16 ⌊i/64⌋ + i mod 16; element i takes word ⌊(i mod 64)/16⌋.
 */
const M0 = 0xd2511f53;
const M1 = 0xcd9e8d57;
const W0 = 0x9e3779b9;
const W1 = 0xbb67ae85;

export type Counter = readonly [number, number, number, number]; // 32-bit words
export type Key = readonly [number, number];

/** Philox4x32-10: four random 32-bit words of a counter and a key. Salmon et al. 2011, §3.2. */
export function philox([c0, c1, c2, c3]: Counter, [k0, k1]: Key): [number, number, number, number] {
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(M0, c0);
    const low0 = Math.imul(M0, c0) >>> 0;
    const high1 = multiplyHigh(M1, c2);
    const low1 = Math.imul(M1, c2) >>> 0;
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + W0) >>> 0;
    k1 = (k1 + W1) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/** Bits 32 to 63 of the product of two 32-bit words. */
function multiplyHigh(a: number, b: number): number {
  const low = (a >>> 16) * (b & 0xffff) + (((a & 0xffff) * (b & 0xffff)) >>> 16);
  const middle = (low & 0xffff) + (a & 0xffff) * (b >>> 16);
  return ((a >>> 16) * (b >>> 16) + Math.floor(low / 65536) + Math.floor(middle / 65536)) >>> 0;
}

/** The two words of an integer from 0 to 2⁵³ − 1. */
export const wordsOf = (n: number): [low: number, high: number] => [n >>> 0, Math.floor(n / 2 ** 32)];

/** The seed, the step and the place on which alone the random numbers of a call depend. */
export interface RandomStream {
  readonly seed: number; // whole, 0 to 2⁵³ − 1
  readonly step: number;
  /** The place of x[0] in a longer vector, a multiple of 64; by default 0. */
  readonly index?: number | undefined;
}

/** below(i, p): true with probability p, for element i of the call. */
export function draws({ seed, step, index = 0 }: RandomStream): (i: number, p: number) => boolean {
  const key = wordsOf(seed);
  const steps = wordsOf(step);
  return (i, p) => {
    const at = index + i;
    const [low, high] = wordsOf(Math.floor(at / 64) * 16 + (at % 16));
    const word = philox([low, high, ...steps], key)[Math.floor((at % 64) / 16)]!;
    return word >>> 1 < p * 2 ** 31;
  };
}
