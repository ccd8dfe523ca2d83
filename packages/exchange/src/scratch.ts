/**
 * Memory that schemes need for a while: it comes from one pool of the process and goes back, so that training steps use the same
 * memory again and again. Each rank counts what it holds, which is how a test knows that a scheme's `peakBytes` is true.
 */
import type { Group } from "@terse/collectives";

export class Scratch {
  /** Bytes that are out, and the most that ever were. */
  live = 0;
  peak = 0;

  /** As it was left: only what is written to is known. */
  take(bytes: number): Uint8Array {
    this.live += bytes;
    this.peak = Math.max(this.peak, this.live);
    return free.get(bytes)?.pop() ?? new Uint8Array(bytes);
  }

  /** What `take` gave, once. */
  give(memory: Uint8Array): void {
    this.live -= memory.byteLength;
    const same = free.get(memory.byteLength);
    if (!same) free.set(memory.byteLength, [memory]);
    else if (same.length < kept && !same.includes(memory)) same.push(memory);
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

/** The books of this rank in this group; several ranks of one process keep their own. */
export function scratchOf(group: Group): Scratch {
  let scratch = books.get(group);
  if (!scratch) {
    scratch = new Scratch();
    books.set(group, scratch);
  }
  return scratch;
}

/** For what no scheme asks for. */
export const unbooked = new Scratch();

const books = new WeakMap<Group, Scratch>();
const kept = 8; // buffers of each size; what is beyond that is left to the collector
const free = new Map<number, Uint8Array[]>();
