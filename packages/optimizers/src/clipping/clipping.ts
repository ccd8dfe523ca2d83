/**
 * Gradient clipping by the norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063
 *
 *   g ← min(1, limit / N) g
 *
 * Algorithms that average gradients clip the mean, after it has come. Others clip each rank's own gradient, before
 * anything else is done with it. Where a mean comes only to its owner, as with Muon, the ranks add up in one small
 * message what the owners know. N is
 *
 *   global      the norm of the whole gradient                                                 by-global.ts
 *   bucket      the norm of each bucket                                                        by-bucket.ts
 *   previous    of own gradients an estimate of the global norm, from the step before          by-previous.ts
 */
import type { Group } from "@terse/collectives";
import type { Bucket } from "../bucket.ts";
import { byBucket } from "./by-bucket.ts";
import { byGlobal } from "./by-global.ts";
import { byPrevious } from "./by-previous.ts";
import type { ClippingWay } from "./clipping-way.ts";

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

  /** The way in which the buckets of the next step are clipped; undefined without a limit. */
  way(buckets: readonly Bucket[]): ClippingWay | undefined {
    if (this.limit === 0) return undefined;
    if (this.by === "bucket") return byBucket;
    // Where buckets have another size, as after a resume with another recipe, there is no step before.
    const known = this.usesPrevious && this.previousSquares?.length === buckets.length;
    return known ? byPrevious(this.previousSquares!) : byGlobal;
  }

  /** Waits until the ranks have agreed on the norms of the step before. */
  settle(): Promise<void> {
    return this.#agreeing;
  }

  /** After a step: the ranks agree on the norms of its buckets, in a message that travels beside what comes next. */
  close({ ownSquares }: { readonly ownSquares: readonly number[] | undefined }): void {
    if (!this.usesPrevious || ownSquares === undefined) return;
    const squares = Float64Array.from(ownSquares);
    this.#agreeing = this.#group.allReduce(squares, "mean").then(() => {
      this.previousSquares = [...squares];
    });
    this.#agreeing.catch(() => {}); // `settle` throws it
  }
}
