import { type Scratch, unbooked } from "./scratch.ts";

/**
 * One bit an element, packed LSB first, in whole 64-bit words: bit 1 = plus, pad bits 0.
 * The memory comes from the pool and goes back with `dispose`; `scratch` keeps the books of it.
 */
export class PackedBits implements Disposable {
  readonly length: number; // elements
  readonly wire: Uint8Array; // 8 · ⌈length / 64⌉ bytes
  /** Index of the first element whose sign was asked of NaN or ±∞; the exchange tells every rank instead of sending it. */
  firstNonFinite: number | undefined;
  readonly #scratch: Scratch;
  readonly #encode: Encode | undefined;
  readonly #signed: Signed | undefined;
  #filled = 0; // elements that have been encoded
  #given = false;

  /**
   * With `encode` the signs are there once `fill` has asked for them; without, whoever made the bits writes them. `signed`: what they are
   * the signs of.
   */
  constructor(length: number, scratch: Scratch = unbooked, encode?: Encode, signed?: Signed) {
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RangeError(`bits: the length must be a whole number from 0 on, and is ${length}`);
    this.length = length;
    this.#scratch = scratch;
    this.#encode = encode;
    this.#signed = signed;
    this.wire = scratch.take(bytesOf(length));
    this.wire.fill(0, Math.ceil(length / 8)); // kernels write ⌈length / 8⌉ bytes; what is left of the last word is pad
  }

  /** Makes sure that the first `end` elements have been encoded, so that a scheme can send them while the others are. */
  fill(end: number = this.length): void {
    const from = this.#filled;
    const to = Math.min(this.length, 64 * wordsOf(end));
    if (to <= from) return;
    this.#filled = to;
    this.#encode?.(this, from, to);
  }

  /** What an exact zero of `values` is to become, where these are known. */
  get zero(): "plus" | "minus" | undefined {
    return this.#signed?.zero;
  }

  /** What these are the signs of; ±1 where only the signs are known. In place of `fill`, because a momentum moves on with either. */
  values(into: Float32Array): void {
    if (this.#signed) this.#signed.write(into, this);
    else {
      this.fill();
      for (let i = 0; i < into.length; i++) into[i] = (this.wire[i >> 3]! >> (i & 7)) & 1 ? 1 : -1;
    }
  }

  /** The ⌈length / 8⌉ bytes that kernels and codecs read and write. */
  get signs(): Uint8Array {
    return this.wire.subarray(0, Math.ceil(this.length / 8));
  }

  [Symbol.dispose](): void {
    if (!this.#given) this.#scratch.give(this.wire);
    this.#given = true;
  }
}

/** Writes the signs of elements from … to − 1 into bits.signs; `from` is a multiple of 64. */
export type Encode = (bits: PackedBits, from: number, to: number) => void;

/** What signs are taken of. */
export interface Signed {
  readonly zero: "plus" | "minus" | undefined;
  write(into: Float32Array, bits: PackedBits): void;
}

/** Words of a vector of n signs. */
export function wordsOf(n: number): number {
  return Math.ceil(n / 64);
}

/** Bytes of a vector of n signs. */
export function bytesOf(n: number): number {
  return 8 * wordsOf(n);
}

/** −1, 0 or +1 an element, as two bit planes. */
export class Ternary implements Disposable {
  readonly plus: PackedBits;
  readonly nonzero: PackedBits;

  constructor(plus: PackedBits, nonzero: PackedBits) {
    this.plus = plus;
    this.nonzero = nonzero;
  }

  [Symbol.dispose](): void {
    this.plus[Symbol.dispose]();
    this.nonzero[Symbol.dispose]();
  }
}

/** How many of `ranks` voted plus, as bit planes: plane k holds bit k of the count. */
export class Tally implements Disposable {
  readonly planes: readonly PackedBits[];
  readonly ranks: number;

  constructor(planes: readonly PackedBits[], ranks: number) {
    this.planes = planes;
    this.ranks = ranks;
  }

  [Symbol.dispose](): void {
    for (const plane of this.planes) plane[Symbol.dispose]();
  }
}
