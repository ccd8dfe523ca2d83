/**
 * Temporary memory of schemes. It comes from one pool of the process and returns to it, so that every training step
 * uses the same memory. Each rank counts the bytes that it holds; a test compares that count with a scheme's
 * `peakBytes`.
 */
import type { Group } from "@terse/collectives";

export class Scratch {
  /** Bytes in use, and the most that ever were. */
  live = 0;
  peak = 0;

  /** Memory with unknown contents. */
  take(bytes: number): Uint8Array {
    this.live += bytes;
    this.peak = Math.max(this.peak, this.live);
    return free.get(bytes)?.pop() ?? new Uint8Array(bytes);
  }

  /** Returns memory of `take` to the pool. Each buffer is returned once. */
  give(memory: Uint8Array): void {
    this.live -= memory.byteLength;
    const sameSize = free.get(memory.byteLength);
    if (!sameSize) free.set(memory.byteLength, [memory]);
    else if (sameSize.length < kept && !sameSize.includes(memory)) sameSize.push(memory);
  }

  /** Memory until the end of a block: `using sums = scratch.loan(4 * n)`. */
  loan(bytes: number): Loan {
    return new Loan(this, bytes);
  }
}

export class Loan implements Disposable {
  readonly bytes: Uint8Array;
  readonly #scratch: Scratch;

  constructor(scratch: Scratch, bytes: number) {
    this.#scratch = scratch;
    this.bytes = scratch.take(bytes);
  }

  get floats(): Float32Array {
    return new Float32Array(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength / 4);
  }

  [Symbol.dispose](): void {
    this.#scratch.give(this.bytes);
  }
}

/** The scratch of this rank in this group. Several ranks of one process count separately. */
export function scratchOf(group: Group): Scratch {
  let scratch = scratches.get(group);
  if (!scratch) {
    scratch = new Scratch();
    scratches.set(group, scratch);
  }
  return scratch;
}

/** Memory outside of schemes; no rank counts it. */
export const uncounted = new Scratch();

const scratches = new WeakMap<Group, Scratch>();
const kept = 8; // buffers of each size; the garbage collector frees the others
const free = new Map<number, Uint8Array[]>();
