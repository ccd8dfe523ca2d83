import { type Scratch, uncounted } from "./scratch.ts";
import { type Timer, watched } from "./watched.ts";

/**
 * Signs, one bit an element, packed LSB first in whole 64-bit words: bit 1 = plus, pad bits 0.
 * The memory comes from the pool of scratch.ts and returns to it with `dispose`; `scratch` counts it.
 */
export class PackedBits implements Disposable {
  readonly length: number; // elements
  readonly wire: Uint8Array; // 8 · ⌈length / 64⌉ bytes
  /**
   * Index of the first element that is NaN or ±∞ and so has no sign. The exchange then refuses the step on every rank.
   */
  firstNonFinite: number | undefined;
  /** Hears how long encoding takes. */
  watch: Timer | undefined;
  readonly #scratch: Scratch;
  readonly #encode: Encode | undefined;
  readonly #signed: Signed | undefined;
  #filled = 0; // elements that have been encoded
  #disposed = false;

  /**
   * `encode` writes the signs when `fill` calls it; without `encode` the caller writes them into `signs` or `wire`.
   * `signed` gives the values themselves, for schemes that send values.
   */
  constructor(length: number, scratch: Scratch = uncounted, encode?: Encode, signed?: Signed) {
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RangeError(`PackedBits: length must be a non-negative integer, and is ${length}`);
    this.length = length;
    this.#scratch = scratch;
    this.#encode = encode;
    this.#signed = signed;
    this.wire = scratch.take(bytesOf(length));
    this.wire.fill(0, Math.ceil(length / 8)); // kernels write ⌈length / 8⌉ bytes; the rest of the last word is pad
  }

  /** Encodes at least the first `end` elements, so that a scheme can send them and encode the others meanwhile. */
  fill(end: number = this.length): void {
    const from = this.#filled;
    const to = Math.min(this.length, 64 * wordsOf(end));
    if (to <= from) return;
    this.#filled = to;
    watched(this.watch, "encode", () => this.#encode?.(this, from, to));
  }

  /** The sign of an exact zero among `values`; undefined if only the signs are known. */
  get zero(): "plus" | "minus" | undefined {
    return this.#signed?.zero;
  }

  /**
   * The values whose signs these are; ±1 if only the signs are known. Call either `fill` or `values`: both update the
   * momentum.
   */
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
    if (!this.#disposed) this.#scratch.give(this.wire);
    this.#disposed = true;
  }
}

/** Writes the signs of the elements [from, to) into bits.signs; `from` is a multiple of 64. */
export type Encode = (bits: PackedBits, from: number, to: number) => void;

/** The values whose signs are packed. */
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

/** The number of ranks that voted plus on each element, as bit planes: plane k holds bit k of the number. */
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
