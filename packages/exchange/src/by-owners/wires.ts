import type { Loan, Scratch } from "../scratch.ts";

/** The part of a message for a rank that gets none. */
export const noBytes = new Uint8Array(0);

/** The wires of several vectors, one after the other for each rank. */
export class Wires implements Disposable {
  readonly byRank: Uint8Array[] = []; // of all vectors together
  readonly #scratch: Scratch;
  readonly #ranks: number;
  readonly #sizes: readonly (readonly number[])[]; // [vector][rank]
  #loan: Loan | undefined;

  constructor(scratch: Scratch, ranks: number, sizes: readonly (readonly number[])[]) {
    this.#scratch = scratch;
    this.#ranks = ranks;
    this.#sizes = sizes;
  }

  /** Takes the memory, unless it has been taken already. */
  take(): void {
    if (this.#loan) return;
    const totals = Array.from({ length: this.#ranks }, (_, r) => this.#sizes.reduce((sum, of) => sum + of[r]!, 0));
    this.#loan = this.#scratch.loan(totals.reduce((a, b) => a + b, 0));
    let at = 0;
    for (const total of totals) {
      this.byRank.push(this.#loan.bytes.subarray(at, at + total));
      at += total;
    }
  }

  /** The wires of one vector, by rank. */
  of(vector: number): Uint8Array[] {
    return this.byRank.map((all, r) => {
      const before = this.#sizes.slice(0, vector).reduce((sum, of) => sum + of[r]!, 0);
      return all.subarray(before, before + this.#sizes[vector]![r]!);
    });
  }

  /** The parts of a message: all wires, and an empty part for this rank, which sends noBytes to itself. */
  except(rank: number): Uint8Array[] {
    return this.byRank.map((all, r) => (r === rank ? noBytes : all));
  }

  [Symbol.dispose](): void {
    this.#loan?.[Symbol.dispose]();
    this.#loan = undefined;
  }
}
