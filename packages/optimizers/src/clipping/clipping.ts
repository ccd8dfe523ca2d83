/**
 * Gradient clipping by the norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063
 *
 *   g ← min(1, limit / N) g
 *
 * Algorithms that average gradients clip the mean, after it has come. Others clip each rank's own gradient, before
 * anything else is done with it. Where a mean comes only to its owner, as with Muon, the ranks add up in one small
 * message what the owners know. N is
 *
 *   global      the norm of the whole gradient: an own gradient waits for the end of backward, and a mean for the means
 *               of all buckets
 *   bucket      the norm of each bucket: no bucket waits for another
 *   previous    of own gradients an estimate of the global norm, from the step before (by-previous.ts); of means the
 *               global norm
 */
import type { Group } from "@terse/collectives";

/** The norms that may clip a gradient. */
export const clipBys = ["global", "bucket", "previous"] as const;

/** One of `clipBys`: the norm of the whole gradient, of each bucket, or an estimate of the global one. */
export type ClipBy = (typeof clipBys)[number];

export class Clipping {
  readonly limit: number; // 0: none
  readonly by: ClipBy;
  /**
   * p_j of the step before (by-previous.ts); undefined before the first one. The same on every rank, and part of what
   * is saved.
   */
  previousSquares: readonly number[] | undefined;
  readonly #group: Group;
  #agreeing: Promise<void> = Promise.resolve();

  constructor(group: Group, limit: number, by: ClipBy) {
    this.#group = group;
    this.limit = limit;
    this.by = by;
  }

  /** Whether the factor of a mean gradient needs the means of all buckets. */
  get meansNeedAll(): boolean {
    return this.limit > 0 && this.by !== "bucket";
  }

  get usesPrevious(): boolean {
    return this.limit > 0 && this.by === "previous";
  }

  /** `previousSquares` for a step of so many buckets. None where there were others, as after a resume. */
  squaresOf(buckets: number): readonly number[] | undefined {
    return this.usesPrevious && this.previousSquares?.length === buckets ? this.previousSquares : undefined;
  }

  /** Whether own gradients must all be there before the first of so many buckets leaves. */
  ownNeedAll(buckets: number): boolean {
    return this.limit > 0 && this.by !== "bucket" && this.squaresOf(buckets) === undefined;
  }

  /** Waits until the ranks have agreed on the norms of the step before. */
  settle(): Promise<void> {
    return this.#agreeing;
  }

  /** After a step: the ranks agree on n_j² of its buckets, in a message that travels beside what comes next. */
  agreeOn(ownSquares: readonly number[] | undefined): void {
    if (!this.usesPrevious || ownSquares === undefined) return;
    const squares = Float64Array.from(ownSquares);
    this.#agreeing = this.#group.allReduce(squares, "mean").then(() => {
      this.previousSquares = [...squares];
    });
    this.#agreeing.catch(() => {}); // `settle` throws it
  }
}
