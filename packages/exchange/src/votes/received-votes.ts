import { PackedBits } from "../packed-bits.ts";
import { signsOf } from "../partition.ts";
import type { Scratch } from "../scratch.ts";

/**
 * The votes of all ranks on the same n elements: memory for the votes that arrive, and this rank's own votes in place.
 * If the outcome has several planes, the own votes are copied, because the first plane overwrites them.
 */
export class ReceivedVotes implements Disposable {
  /** The votes that arrive, by rank; this rank's entry is empty unless its votes are copied. */
  readonly incoming: readonly Uint8Array[];
  /** The ⌈n / 8⌉ bytes of each rank's votes, by rank. */
  readonly votes: readonly Uint8Array[];
  readonly copied: boolean;
  readonly #memory: readonly PackedBits[];

  constructor(
    own: Uint8Array,
    n: number,
    { rank, size }: { rank: number; size: number },
    planes: number,
    scratch: Scratch,
  ) {
    this.copied = planes > 1;
    const memory = Array.from({ length: size }, (_, r) =>
      r === rank && !this.copied ? undefined : new PackedBits(n, scratch),
    );
    this.incoming = memory.map((bits) => bits?.wire ?? own.subarray(0, 0));
    this.votes = memory.map((bits) => bits?.signs ?? signsOf(own, n));
    this.#memory = memory.filter((bits) => bits !== undefined);
  }

  [Symbol.dispose](): void {
    for (const bits of this.#memory) bits[Symbol.dispose]();
  }
}

/** The number of vectors of n votes that a rank holds besides its own. */
export function receivedVectors(ranks: number, planes: number): number {
  return planes > 1 ? ranks : ranks - 1;
}
