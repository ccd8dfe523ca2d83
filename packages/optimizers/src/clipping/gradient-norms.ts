/** The norms of one step's gradients: they refuse what is not finite, and clip what is too large. */
import type { Collectives } from "@terse/collectives";
import { ofMean, type RefusalReason, StepRefusedError } from "@terse/exchange";
import { type BufferLike, sumOfSquares } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";
import { type Bucket, namesIn } from "../buckets.ts";
import type { Span } from "../parameter-groups.ts";
import { averagesAtOwner, gradientOf } from "../rounds.ts";
import { normByPrevious } from "./by-previous.ts";
import type { Clipping } from "./clipping.ts";

/** A bucket is named by its place in the order in which the buckets leave. */
export class GradientNorms {
  readonly clipping: Clipping;
  readonly #spans: readonly Span[];
  readonly #buckets: readonly Bucket[];
  readonly #step: number;
  readonly #previousSquares: readonly number[] | undefined;
  readonly #known: number | undefined; // of the rank's gradients, where nothing is clipped
  readonly #own = new Map<number, number>(); // norms of own gradients, by bucket
  readonly #means = new Map<number, number>(); // sums of squares of the mean gradients that have come, by bucket
  readonly #atOwners = new Map<number, number>(); // the same of those that have come to this rank alone
  #wholeOwn: number | undefined;
  #refusal: RefusalReason | undefined; // of a compressed mean

  /** The spans leave in these buckets. `known`: the norm of this rank's gradients, where the caller knows it. */
  constructor(clipping: Clipping, spans: readonly Span[], buckets: readonly Bucket[], step: number, known?: number) {
    this.clipping = clipping;
    this.#spans = spans;
    this.#buckets = buckets;
    this.#step = step;
    this.#previousSquares = clipping.squaresOf(buckets.length);
    this.#known = clipping.limit === 0 ? known : undefined;
  }

  /**
   * Takes the norm of a bucket's own gradients before it leaves. Returns why they cannot be used, or undefined. It
   * looks at all gradients of the bucket where some are the rank's own, are compressed (errors would keep what is not
   * finite), or come to one rank. Of dense means all ranks see by themselves whether they are finite.
   */
  refusalOfOwn(place: number): RefusalReason | undefined {
    if (this.#known !== undefined) return refusalOfNorm(this.#known);
    const { spans } = this.#buckets[place]!;
    if (spans.every((span) => gradientOf(span, this.#step) === "mean")) return undefined;
    const own = this.#ownOf(spans);
    const norm = normOf(own);
    if (own.length > 0) this.#own.set(place, norm);
    return refusalOfNorm(own.length === spans.length ? norm : normOf(spans.map(({ g }) => g)));
  }

  /** Without a clip only owners know the norms of their means: then the norms of the rank's own gradients count. */
  #ownOf(spans: readonly Span[]): Tensor[] {
    const kinds = this.clipping.limit === 0 ? ["own", "mean at its owner"] : ["own"];
    return spans.filter((span) => kinds.includes(gradientOf(span, this.#step))).map(({ g }) => g);
  }

  /**
   * Takes the norm of a mean gradient that has come. Returns whether its elements are finite. Throws a
   * StepRefusedError, on every rank alike, where they are too large to work with.
   */
  acceptMean(place: number, g: Tensor): boolean {
    return acceptNorm(this.#takeMean(place, g));
  }

  #takeMean(place: number, g: Tensor): number {
    const squares = sumOfSquares(g);
    add(this.#means, place, squares);
    return Math.sqrt(squares);
  }

  /**
   * Counts the norm of a mean that this rank has put together from compressed messages; `agree` throws where it is not
   * finite. Where nobody asks for the norm it is not taken: the mean of gradients that can be used is finite.
   */
  acceptCompressed(place: number, g: Tensor): void {
    if (this.#known === undefined) this.#refusal ??= refusalOfNorm(this.#takeMean(place, g));
  }

  /**
   * Counts the norm of a mean gradient that this rank alone has, as its owner. It is usable, because all ranks' own
   * gradients are.
   */
  acceptAtOwner(place: number, g: Tensor): void {
    if (this.clipping.limit > 0) add(this.#atOwners, place, sumOfSquares(g));
  }

  /**
   * Called when all mean gradients have come. Owners tell all ranks the norms that only they know; without any, or
   * without a limit, nothing is sent. Throws a StepRefusedError, on every rank alike, where a compressed mean cannot be
   * used.
   */
  async agree(group: Pick<Collectives, "allReduce">): Promise<void> {
    if (this.#refusal) throw new StepRefusedError(undefined, ofMean(this.#refusal));
    const owned = [...this.#buckets.keys()].filter((place) => averagesAtOwner(this.#buckets[place]!, this.#step));
    if (this.clipping.limit === 0 || owned.length === 0) return;
    const squares = Float64Array.from(owned, (place) => this.#atOwners.get(place) ?? 0);
    await group.allReduce(squares, "sum");
    for (const [i, place] of owned.entries()) add(this.#means, place, squares[i]!);
  }

  /** The factor that clips a bucket's own gradients. The buckets before it have left. */
  ownFactor(place: number): number {
    return this.#factor(() => {
      if (this.clipping.by === "bucket") return this.#ownNorm(place);
      if (!this.#previousSquares) return this.#wholeOwnNorm();
      const known = Array.from({ length: place + 1 }, (_, each) => this.#ownNorm(each));
      return normByPrevious(known, this.#previousSquares);
    });
  }

  /** The factor that has clipped the own gradient of a parameter, after the step. */
  ownFactorOf(name: string): number {
    return this.ownFactor(this.#buckets.findIndex((bucket) => namesIn(bucket).includes(name)));
  }

  /** The factor that clips a bucket's mean gradients. */
  meanFactor(place: number): number {
    return this.#factor(() => {
      if (this.clipping.by === "bucket" || this.#buckets.length === 1) return this.#meanNorm(place);
      const norms = this.#buckets.map((_, each) => this.#meanNorm(each));
      return Math.sqrt(norms.reduce((sum, norm) => sum + norm * norm, 0));
    });
  }

  #factor(clippingNorm: () => number): number {
    const { limit } = this.clipping;
    if (limit === 0) return 1;
    const norm = clippingNorm();
    return norm > limit ? limit / norm : 1;
  }

  #ownNorm(place: number): number {
    return this.#own.get(place) ?? 0;
  }

  #meanNorm(place: number): number {
    return Math.sqrt(this.#means.get(place) ?? 0);
  }

  #wholeOwnNorm(): number {
    if (this.#buckets.length === 1) return this.#ownNorm(0);
    this.#wholeOwn ??= normOf(this.#ownOf(this.#spans));
    return this.#wholeOwn;
  }

  /**
   * The norm of the whole gradient before clipping: that which the caller knows; else of the means where gradients are
   * averaged and this rank knows them, and of its own elsewhere.
   */
  get norm(): number {
    if (this.#known !== undefined) return this.#known;
    const own = this.#wholeOwn === undefined ? [...this.#own.values()] : [this.#wholeOwn];
    const means = [...this.#means.values()].map(Math.sqrt);
    return Math.hypot(...[...own, ...means].sort((a, b) => a - b)); // not in the order in which they came
  }

  /** n_j² of every bucket's own gradients; undefined where all gradients are averaged. */
  get ownSquares(): number[] | undefined {
    return this.#own.size === 0 ? undefined : this.#buckets.map((_, place) => this.#ownNorm(place) ** 2);
  }
}

function add(squares: Map<number, number>, place: number, more: number): void {
  squares.set(place, (squares.get(place) ?? 0) + more);
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
