/**
 * Gradient clipping by the norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063
 *
 *   g ← min(1, limit / N) g
 *
 * N is the norm of the whole gradient ("global"), of each bucket ("bucket"), or that of the whole gradient in the step before
 * ("previous"), which is known before backward, so that messages can leave while backward runs. Algorithms that average gradients
 * clip the mean; others clip each rank's own gradient before anything is made of it. The norm of the step before is agreed on by all
 * ranks: N² = Σ |mean g|² + (1/P) Σ_ranks |own g|², over the parts of the model that are averaged and those that are not.
 */
import type { Group } from "@terse/collectives";
import { type BufferLike, sumOfSquares } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";
import { averagesGradients } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";
import type { Span } from "./parameter-groups.ts";

/** Whose norm a gradient is clipped by. */
export const clipBys = ["global", "bucket", "previous"] as const;

export type ClipBy = (typeof clipBys)[number];

export class Clipping {
  readonly limit: number; // 0: none
  readonly by: ClipBy;
  /** N of the step before; undefined before the first one. The same on every rank, and part of what is saved. */
  previousNorm: number | undefined;
  readonly #group: Group;
  #agreeing: Promise<void> = Promise.resolve();

  constructor(group: Group, limit: number, by: ClipBy) {
    this.#group = group;
    this.limit = limit;
    this.by = by;
  }

  get usesPreviousNorm(): boolean {
    return this.limit > 0 && this.by === "previous";
  }

  /** Waits until the ranks have agreed on the norm of the step before. */
  settle(): Promise<void> {
    return this.#agreeing;
  }

  /** The norms of one step, whose spans leave in these buckets. */
  open(spans: readonly Span[], buckets: readonly Bucket[], step: number): GradientNorms {
    return new GradientNorms(this, spans, buckets, step);
  }

  /** After a step: the ranks agree on its norm, which takes a message only where they work on own gradients. */
  close({ ownSquares, meanSquares }: { ownSquares: number | undefined; meanSquares: number }): void {
    if (!this.usesPreviousNorm) return;
    if (ownSquares === undefined || this.#group.size === 1) {
      this.previousNorm = Math.sqrt(meanSquares + (ownSquares ?? 0));
      return;
    }
    const squares = Float64Array.of(ownSquares);
    this.#agreeing = this.#group.allReduce(squares, "mean").then(() => {
      this.previousNorm = Math.sqrt(meanSquares + squares[0]!);
    });
    this.#agreeing.catch(() => {}); // `settle` throws it
  }

  factor(norm: number): number {
    return this.limit > 0 && norm > this.limit ? this.limit / norm : 1;
  }
}

/** The norms of a step's gradients, and the factors that clip them. */
export class GradientNorms {
  readonly #clipping: Clipping;
  readonly #spans: readonly Span[];
  readonly #buckets: readonly Bucket[];
  readonly #step: number;
  readonly #fixed: number | undefined; // the factor of this step, where the step before decides it
  readonly #own = new Map<Bucket, number>();
  readonly #means = new Map<Bucket, number[]>(); // sums of squares of the mean gradients that have come
  #wholeOwn: number | undefined;

  constructor(clipping: Clipping, spans: readonly Span[], buckets: readonly Bucket[], step: number) {
    this.#clipping = clipping;
    this.#spans = spans;
    this.#buckets = buckets;
    this.#step = step;
    const { usesPreviousNorm, previousNorm } = clipping;
    this.#fixed = usesPreviousNorm && previousNorm !== undefined ? clipping.factor(previousNorm) : undefined;
  }

  /** Whether a factor needs the norm of all buckets. */
  get needsAll(): boolean {
    return this.#clipping.limit > 0 && this.#clipping.by !== "bucket" && this.#fixed === undefined;
  }

  /**
   * Takes the norm of a bucket's own gradients before it leaves. Whether this rank's gradients can be used: all of the bucket's where
   * some are own ones; a mean shows on all ranks by itself whether it is finite.
   */
  acceptOwn(bucket: Bucket): boolean {
    const own = this.#ownOf(bucket.spans);
    if (own.length === 0) return true;
    const norm = normOf(own);
    this.#own.set(bucket, norm);
    return isUsable(own.length === bucket.spans.length ? norm : normOf(bucket.spans.map(({ g }) => g)));
  }

  /** The factor of a bucket's own gradients. */
  ownFactor(bucket: Bucket): number {
    if (this.#fixed !== undefined) return this.#fixed;
    if (!this.needsAll || this.#buckets.length === 1) return this.#clipping.factor(this.#own.get(bucket) ?? 0);
    this.#wholeOwn ??= normOf(this.#ownOf(this.#spans));
    return this.#clipping.factor(this.#wholeOwn);
  }

  /** Takes the norm of a mean gradient that has come. Whether its elements and their squares are finite in f32. */
  acceptMean(bucket: Bucket, g: Tensor): boolean {
    const squares = sumOfSquares(g);
    this.#means.set(bucket, [...(this.#means.get(bucket) ?? []), squares]);
    return isUsable(Math.sqrt(squares));
  }

  /** The factor of a bucket's mean gradients; where `needsAll`, once those of all buckets have come. */
  meanFactor(bucket: Bucket): number {
    if (this.#fixed !== undefined) return this.#fixed;
    const clipped = this.needsAll ? this.#buckets : [bucket];
    return this.#clipping.factor(together(clipped.map((one) => this.#meanNorm(one))));
  }

  /** Of the whole gradient before clipping: of the means where gradients are averaged, of this rank's own elsewhere. */
  get norm(): number {
    const norms = this.#buckets.flatMap((bucket) => (this.#means.has(bucket) ? [this.#meanNorm(bucket)] : []));
    const own = this.#wholeOwn === undefined ? [...this.#own.values()] : [this.#wholeOwn];
    return Math.hypot(...[...own, ...norms].sort((a, b) => a - b)); // not in the order in which they came
  }

  get squares(): { ownSquares: number | undefined; meanSquares: number } {
    const sum = (norms: readonly number[]) => norms.reduce((total, norm) => total + norm * norm, 0);
    const own = this.#buckets.flatMap((bucket) => this.#own.get(bucket) ?? []);
    const means = this.#buckets.flatMap((bucket) => (this.#means.has(bucket) ? [this.#meanNorm(bucket)] : []));
    return { ownSquares: own.length > 0 ? sum(own) : undefined, meanSquares: sum(means) };
  }

  #meanNorm(bucket: Bucket): number {
    return Math.sqrt((this.#means.get(bucket) ?? []).reduce((sum, squares) => sum + squares, 0));
  }

  #ownOf(spans: readonly Span[]): Tensor[] {
    return spans
      .filter(({ algorithm, vector }) => !averagesGradients(algorithm.messages(vector, this.#step)))
      .map(({ g }) => g);
  }
}

/** Euclidean norm of all the vectors together; NaN or ∞ when one of them is. */
export function normOf(vectors: readonly BufferLike[]): number {
  return Math.sqrt(vectors.reduce((sum, g) => sum + sumOfSquares(g), 0));
}

/** Whether every element and its square are finite in f32: an optimizer can work with nothing beyond that. */
export function isUsable(norm: number): boolean {
  return norm < 2 ** 63; // false for NaN
}

/** The norm of all from the norms of the parts, in this order: always the same bits. */
function together(norms: readonly number[]): number {
  return norms.length === 1 ? norms[0]! : Math.sqrt(norms.reduce((sum, one) => sum + one * one, 0));
}
