import { PackedBits } from "../packed-bits.ts";
import { signsOf } from "../partition.ts";
import type { Scratch } from "../scratch.ts";

/**
 * Votes about the same n elements, one of each rank: memory for those that arrive, and this rank's own where it lies. Where several
 * planes are decided the own votes are copied, because the first plane is written over them.
 */
export class Ballots implements Disposable {
  /** What arrives, by rank; this rank's entry is empty unless it is copied. */
  readonly incoming: readonly Uint8Array[];
  /** The ⌈n / 8⌉ bytes of everybody's votes, by rank. */
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

/** How many ballots of n elements a rank holds beside its own votes. */
export function ballotsHeld(ranks: number, planes: number): number {
  return planes > 1 ? ranks : ranks - 1;
}
