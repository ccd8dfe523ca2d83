/**
 * One bit an element, packed LSB first, in whole 64-bit words: bit 1 = plus, pad bits 0.
 * The memory comes from a pool and goes back with `dispose`, so that training steps use the same memory again and again.
 */
export class Bits implements Disposable {
  readonly length: number; // elements
  readonly wire: Uint8Array; // 8 · ⌈length / 64⌉ bytes
  /** Index of the first element whose sign was asked of NaN or ±∞; the exchange tells every rank instead of sending it. */
  firstNonFinite: number | undefined;

  constructor(length: number) {
    this.length = length;
    this.wire = take(8 * wordsOf(length));
    this.wire.fill(0, Math.ceil(length / 8)); // kernels write ⌈length / 8⌉ bytes; what is left of the last word is pad
  }

  /** The ⌈length / 8⌉ bytes that kernels and codecs read and write. */
  get signs(): Uint8Array {
    return this.wire.subarray(0, Math.ceil(this.length / 8));
  }

  [Symbol.dispose](): void {
    give(this.wire);
  }
}

/** Words of a vector of n signs. */
export function wordsOf(n: number): number {
  return Math.ceil(n / 64);
}

/** −1, 0 or +1 an element, as two bit planes. */
export class Ternary implements Disposable {
  readonly plus: Bits;
  readonly nonzero: Bits;

  constructor(plus: Bits, nonzero: Bits) {
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
  readonly planes: readonly Bits[];
  readonly ranks: number;

  constructor(planes: readonly Bits[], ranks: number) {
    this.planes = planes;
    this.ranks = ranks;
  }

  [Symbol.dispose](): void {
    for (const plane of this.planes) plane[Symbol.dispose]();
  }
}

// --- The pool: a few buffers of each size; what is beyond that is left to the collector ---

const kept = 8;
const pool = new Map<number, Uint8Array[]>();

function take(bytes: number): Uint8Array {
  return pool.get(bytes)?.pop() ?? new Uint8Array(bytes);
}

function give(wire: Uint8Array): void {
  const same = pool.get(wire.length);
  if (!same) pool.set(wire.length, [wire]);
  else if (same.length < kept && !same.includes(wire)) same.push(wire);
}
