/** The norms of one step's gradients: they refuse what is not finite, and clip what is too large. */
import type { Collectives } from "@terse/collectives";
import { ofMean, type RefusalReason, StepRefusedError } from "@terse/exchange";
import { type BufferLike, sumOfSquares } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";
import { averagesAtOwner, averagesGradients, compressesGradients } from "../algorithms/algorithm.ts";
import type { Bucket } from "../bucket.ts";
import type { Span } from "../parameter-groups.ts";
import type { Clipping } from "./clipping.ts";
import type { BucketNorms, ClippingWay } from "./clipping-way.ts";

export class GradientNorms implements BucketNorms {
  readonly #clipping: Clipping;
  readonly #way: ClippingWay | undefined;
  readonly #spans: readonly Span[];
  readonly #buckets: readonly Bucket[];
  readonly #step: number;
  readonly #known: number | undefined; // of the rank's gradients, where nothing is clipped
  readonly #own = new Map<Bucket, number>();
  readonly #means = new Map<Bucket, number[]>(); // sums of squares of the mean gradients that have come
  readonly #atOwners = new Map<Bucket, number>(); // the same of those that have come to this rank alone, together
  #wholeOwn: number | undefined;
  #refusal: RefusalReason | undefined; // of a compressed mean

  /** The spans leave in these buckets. `known`: the norm of this rank's gradients, where the caller knows it. */
  constructor(clipping: Clipping, spans: readonly Span[], buckets: readonly Bucket[], step: number, known?: number) {
    this.#clipping = clipping;
    this.#way = clipping.way(buckets);
    this.#spans = spans;
    this.#buckets = buckets;
    this.#step = step;
    this.#known = clipping.limit === 0 ? known : undefined;
  }

  /** Whether own gradients must all be there before the first bucket leaves. */
  get ownNeedsAll(): boolean {
    return this.#way?.ownNeedsAll ?? false;
  }

  /**
   * Takes the norm of a bucket's own gradients before it leaves. Returns why they cannot be used, or undefined. It
   * looks at all gradients of the bucket where some are the rank's own, are compressed (errors would keep what is not
   * finite), or come to one rank. Of dense means all ranks see by themselves whether they are finite.
   */
  refusalOfOwn(bucket: Bucket): RefusalReason | undefined {
    if (this.#known !== undefined) return refusalOfNorm(this.#known);
    const own = this.#ownOf(bucket.spans);
    if (own.length === 0 && !bucket.spans.some((span) => this.#compresses(span) || this.#atOwner(span)))
      return undefined;
    const norm = normOf(own);
    if (own.length > 0) this.#own.set(bucket, norm);
    return refusalOfNorm(own.length === bucket.spans.length ? norm : normOf(bucket.spans.map(({ g }) => g)));
  }

  /**
   * Takes the norm of a mean gradient that has come. Returns whether its elements are finite. Throws a
   * StepRefusedError, on every rank alike, where they are too large to work with.
   */
  acceptMean(bucket: Bucket, g: Tensor): boolean {
    return acceptNorm(this.#takeMean(bucket, g));
  }

  #takeMean(bucket: Bucket, g: Tensor): number {
    const squares = sumOfSquares(g);
    this.#means.set(bucket, [...(this.#means.get(bucket) ?? []), squares]);
    return Math.sqrt(squares);
  }

  /**
   * Counts the norm of a mean that this rank has put together from compressed messages; `agree` throws where it is not
   * finite. Where nobody asks for the norm it is not taken: the mean of gradients that can be used is finite.
   */
  acceptCompressed(bucket: Bucket, g: Tensor): void {
    if (this.#known === undefined) this.#refusal ??= refusalOfNorm(this.#takeMean(bucket, g));
  }

  /**
   * Counts the norm of a mean gradient that this rank alone has, as its owner. It is usable, because all ranks' own
   * gradients are.
   */
  acceptAtOwner(bucket: Bucket, g: Tensor): void {
    if (this.#clipping.limit > 0) this.#atOwners.set(bucket, (this.#atOwners.get(bucket) ?? 0) + sumOfSquares(g));
  }

  /**
   * Called when all mean gradients have come. Owners tell all ranks the norms that only they know; without any, or
   * without a limit, nothing is sent. Throws a StepRefusedError, on every rank alike, where a compressed mean cannot be
   * used.
   */
  async agree(group: Pick<Collectives, "allReduce">): Promise<void> {
    if (this.#refusal) throw new StepRefusedError(undefined, ofMean(this.#refusal));
    const owned = this.#buckets.filter(({ spans }) => spans.some((span) => this.#atOwner(span)));
    if (this.#clipping.limit === 0 || owned.length === 0) return;
    const squares = Float64Array.from(owned, (bucket) => this.#atOwners.get(bucket) ?? 0);
    await group.allReduce(squares, "sum");
    for (const [i, bucket] of owned.entries())
      this.#means.set(bucket, [...(this.#means.get(bucket) ?? []), squares[i]!]);
  }

  /** The factor that clips a bucket's own gradients. The buckets before it have left. */
  ownFactor(bucket: Bucket): number {
    return this.#factor((way) => way.ownNorm(this.#buckets.indexOf(bucket), this));
  }

  /** The factor that has clipped the own gradient of a parameter, after the step. */
  ownFactorOf(name: string): number {
    const holds = ({ spans }: Bucket) =>
      spans.some(({ vector: { segments } }) => segments.some((segment) => segment.name === name));
    return this.ownFactor(this.#buckets.find(holds)!);
  }

  /** The factor that clips a bucket's mean gradients. */
  meanFactor(bucket: Bucket): number {
    return this.#factor((way) => way.meanNorm(this.#buckets.indexOf(bucket), this));
  }

  #factor(normBy: (way: ClippingWay) => number): number {
    if (!this.#way) return 1;
    const norm = normBy(this.#way);
    return norm > this.#clipping.limit ? this.#clipping.limit / norm : 1;
  }

  own(place: number): number {
    return this.#own.get(this.#buckets[place]!) ?? 0;
  }

  mean(place: number): number {
    return Math.sqrt((this.#means.get(this.#buckets[place]!) ?? []).reduce((sum, squares) => sum + squares, 0));
  }

  wholeOwn(): number {
    if (this.#buckets.length === 1) return this.own(0);
    this.#wholeOwn ??= normOf(this.#ownOf(this.#spans));
    return this.#wholeOwn;
  }

  wholeMean(): number {
    return ofAll(this.#buckets.map((_, place) => this.mean(place)));
  }

  /**
   * The norm of the whole gradient before clipping: that which the caller knows; else of the means where gradients are
   * averaged and this rank knows them, and of its own elsewhere.
   */
  get norm(): number {
    if (this.#known !== undefined) return this.#known;
    const norms = this.#buckets.flatMap((bucket, place) => (this.#means.has(bucket) ? [this.mean(place)] : []));
    const own = this.#wholeOwn === undefined ? [...this.#own.values()] : [this.#wholeOwn];
    return Math.hypot(...[...own, ...norms].sort((a, b) => a - b)); // not in the order in which they came
  }

  /** n_j² of every bucket's own gradients; undefined where all gradients are averaged. */
  get ownSquares(): number[] | undefined {
    if (this.#own.size === 0) return undefined;
    return this.#buckets.map((_, place) => this.own(place) ** 2);
  }

  #compresses({ algorithm, vector, state }: Span): boolean {
    return compressesGradients(algorithm.messages(vector, this.#step, state));
  }

  #atOwner({ algorithm, vector, state }: Span): boolean {
    return averagesAtOwner(algorithm.messages(vector, this.#step, state));
  }

  /** Without a clip only owners know the norms of their means: then the norms of the rank's own gradients count. */
  #ownOf(spans: readonly Span[]): Tensor[] {
    const isOwn = (span: Span) => {
      const { algorithm, vector, state } = span;
      if (!averagesGradients(algorithm.messages(vector, this.#step, state))) return true;
      return this.#clipping.limit === 0 && this.#atOwner(span);
    };
    return spans.filter(isOwn).map(({ g }) => g);
  }
}

/** Euclidean norm of all the vectors together; NaN or ∞ when one of them is. */
export function normOf(vectors: readonly BufferLike[]): number {
  return Math.sqrt(vectors.reduce((sum, g) => sum + sumOfSquares(g), 0));
}

/** Why gradients of this norm cannot be used: an optimizer squares elements, and f32 must hold the squares. */
export function refusalOfNorm(norm: number): RefusalReason | undefined {
  if (norm < 2 ** 63) return undefined;
  return Number.isFinite(norm)
    ? "the norm of the gradient is 2^63 or more, which is too large to work with"
    : "the gradient is not finite";
}

/**
 * Whether a mean of this norm, the same on every rank, is finite. Throws a StepRefusedError, on every rank alike, where
 * it is too large to work with.
 */
export function acceptNorm(norm: number): boolean {
  const refusal = refusalOfNorm(norm);
  if (refusal && Number.isFinite(norm)) throw new StepRefusedError(undefined, ofMean(refusal));
  return refusal === undefined;
}

/** The norm of the whole from the norms of the parts, in this order: always the same bits. */
function ofAll(norms: readonly number[]): number {
  return norms.length === 1 ? norms[0]! : Math.sqrt(norms.reduce((sum, one) => sum + one * one, 0));
}
