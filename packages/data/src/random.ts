/** Random numbers as a function of (seed, position, purpose): integers, the same on every machine. */
import { philox, wordsOf } from "@terse/codecs";

/** What a number is for. Two purposes never share numbers. An entry never changes: it is part of what a seed means. */
export const purposes = { order: 1, augmentation: 2, mixing: 3, masking: 4, images: 5, partner: 6, shift: 7 } as const;

export class RandomNumbers {
  readonly #key: [number, number];
  readonly #counter: [low: number, high: number];
  readonly #purpose: number;
  #words: readonly number[] = [];
  #drawn = 0;

  constructor(seed: number, position: number, purpose: keyof typeof purposes) {
    this.#key = wordsOf(seed);
    this.#counter = wordsOf(position);
    this.#purpose = purposes[purpose];
  }

  /** Uniform over 0 … 2³² − 1. */
  word(): number {
    const i = this.#drawn++;
    if (i % 4 === 0) this.#words = philox([...this.#counter, i >>> 2, this.#purpose << 24], this.#key);
    return this.#words[i % 4]!;
  }

  /** Uniform over 0 … n − 1, for n ≤ 2³². The bias is below n / 2⁵³. */
  below(n: number): number {
    return Math.floor(this.uniform() * n);
  }

  /** Uniform over the multiples of 2⁻⁵³ in [0, 1). */
  uniform(): number {
    return ((this.word() >>> 5) * 2 ** 26 + (this.word() >>> 6)) * 2 ** -53;
  }

  /** True with probability p. */
  chance(p: number): boolean {
    return this.uniform() < p;
  }
}
