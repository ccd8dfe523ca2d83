/**
 * Gradient clipping by the norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063
 *
 *   g ← min(1, limit / N) g
 *
 * Algorithms that average gradients clip the mean, after it has come; others clip each rank's own gradient, before anything is made of
 * it. Where a mean comes to its owner alone, as Muon's, the ranks add up in one small message what owners know. N is
 *
 *   global      the norm of the whole gradient: an own gradient waits for the end of backward
 *   bucket      the norm of each bucket
 *   previous    for own gradients, an estimate of the global norm when bucket b leaves, while backward still runs:
 *               N_b = √(Σ_{j ≤ b} n_j²) · √(Σ_j p_j / Σ_{j ≤ b} p_j)
 *               n_j: norm of bucket j, in the order in which they leave;  p_j: n_j² of the step before, its mean over the ranks, on
 *               which all agree in one small message. So the part that is known now is extended by the shares of the step before; a
 *               gradient that grows as a whole is clipped as by its global norm. The norm of the step before alone would let spikes
 *               through, which momenta remember. Without a step before: global.
 */
import type { Group } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { type BufferLike, sumOfSquares } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";
import { averagesAtOwner, averagesGradients, compressesGradients } from "./algorithms/algorithm.ts";
import type { Bucket } from "./buckets.ts";
import type { Span } from "./parameter-groups.ts";
import type { HeldMeans } from "./span-exchange.ts";

/** Whose norm a gradient is clipped by. */
export const clipBys = ["global", "bucket", "previous"] as const;

export type ClipBy = (typeof clipBys)[number];

export class Clipping {
  readonly limit: number; // 0: none
  readonly by: ClipBy;
  /** p_j of the step before; undefined before the first one. The same on every rank, and part of what is saved. */
  previousSquares: readonly number[] | undefined;
  readonly #group: Group;
  #agreeing: Promise<void> = Promise.resolve();

  constructor(group: Group, limit: number, by: ClipBy) {
    this.#group = group;
    this.limit = limit;
    this.by = by;
  }

  get usesPrevious(): boolean {
    return this.limit > 0 && this.by === "previous";
  }

  get heldMeans(): HeldMeans {
    return { everywhere: this.limit > 0 && this.by !== "bucket", atOwners: this.limit > 0 };
  }

  /** Waits until the ranks have agreed on the norms of the step before. */
  settle(): Promise<void> {
    return this.#agreeing;
  }

  /** The norms of one step, whose spans leave in these buckets. */
  open(spans: readonly Span[], buckets: readonly Bucket[], step: number): GradientNorms {
    return new GradientNorms(this, spans, buckets, step);
  }

  /** After a step: the ranks agree on the norms of its buckets, in a message that travels beside what comes next. */
  close({ ownSquares }: GradientNorms): void {
    if (!this.usesPrevious || ownSquares === undefined) return;
    const squares = Float64Array.from(ownSquares);
    this.#agreeing = this.#group.allReduce(squares, "mean").then(() => {
      this.previousSquares = [...squares];
    });
    this.#agreeing.catch(() => {}); // `settle` throws it
  }

  /** Σ over ranks of each number. */
  async sum(squares: Float64Array): Promise<void> {
    await this.#group.allReduce(squares, "sum");
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
  readonly #previous: readonly number[] | undefined; // p_j, where they are used
  readonly #own = new Map<Bucket, number>();
  readonly #means = new Map<Bucket, number[]>(); // sums of squares of the mean gradients that have come
  readonly #atOwners = new Map<Bucket, number>(); // the same of those that have come to this rank alone, together
  readonly #compressed: { awaited: number; refused: boolean } & Pick<PromiseWithResolvers<void>, "promise" | "resolve">;
  #wholeOwn: number | undefined;

  constructor(clipping: Clipping, spans: readonly Span[], buckets: readonly Bucket[], step: number) {
    this.#clipping = clipping;
    this.#spans = spans;
    this.#buckets = buckets;
    this.#step = step;
    const { usesPrevious, previousSquares } = clipping;
    const awaited = buckets.flatMap((bucket) => bucket.spans).filter((span) => this.#compresses(span)).length;
    this.#compressed = { ...Promise.withResolvers<void>(), awaited, refused: false };
    // Of buckets of another size, as after a resume with another recipe, there is no step before.
    if (usesPrevious && previousSquares?.length === buckets.length) this.#previous = previousSquares;
  }

  /** Whether the factor of a mean gradient needs the means of all buckets. */
  get meansNeedAll(): boolean {
    return this.#clipping.heldMeans.everywhere;
  }

  /** Whether own gradients must all be there before the first bucket leaves. */
  get ownNeedsAll(): boolean {
    return this.meansNeedAll && this.#previous === undefined;
  }

  /**
   * Takes the norm of a bucket's own gradients before it leaves. Whether this rank's gradients can be used: all of the bucket's where
   * some are own ones, or are compressed, which keeps errors, or come to one rank; a dense mean shows on all ranks by itself whether it is
   * finite.
   */
  acceptOwn(bucket: Bucket): boolean {
    const own = this.#ownOf(bucket.spans);
    if (own.length === 0 && !bucket.spans.some((span) => this.#compresses(span) || this.#atOwner(span))) return true;
    const norm = normOf(own);
    if (own.length > 0) this.#own.set(bucket, norm);
    return isUsable(own.length === bucket.spans.length ? norm : normOf(bucket.spans.map(({ g }) => g)));
  }

  /** The factor of a bucket's own gradients. The buckets before it have left. */
  ownFactor(bucket: Bucket): number {
    if (this.#previous) return this.#clipping.factor(this.#estimate(this.#buckets.indexOf(bucket), this.#previous));
    if (!this.ownNeedsAll || this.#buckets.length === 1) return this.#clipping.factor(this.#own.get(bucket) ?? 0);
    this.#wholeOwn ??= normOf(this.#ownOf(this.#spans));
    return this.#clipping.factor(this.#wholeOwn);
  }

  /** Takes the norm of a mean gradient that has come. Whether its elements and their squares are finite in f32. */
  acceptMean(bucket: Bucket, g: Tensor): boolean {
    const squares = sumOfSquares(g);
    this.#means.set(bucket, [...(this.#means.get(bucket) ?? []), squares]);
    return isUsable(Math.sqrt(squares));
  }

  /** The same on the owner of a mean gradient that nobody else has. It is usable, as all ranks' own are. */
  acceptAtOwner(bucket: Bucket, g: Tensor): void {
    if (this.#clipping.limit > 0) this.#atOwners.set(bucket, (this.#atOwners.get(bucket) ?? 0) + sumOfSquares(g));
  }

  /** All mean gradients that come to owners have come: the ranks tell each other their norms. Sends nothing where there are none, or no clip. */
  async agree(): Promise<void> {
    if (!this.#clipping.heldMeans.atOwners) return;
    const known = this.#buckets.filter(({ spans }) => spans.some((span) => this.#atOwner(span)));
    if (known.length === 0) return;
    const squares = Float64Array.from(known, (bucket) => this.#atOwners.get(bucket) ?? 0);
    await this.#clipping.sum(squares);
    for (const [i, bucket] of known.entries())
      this.#means.set(bucket, [...(this.#means.get(bucket) ?? []), squares[i]!]);
  }

  /** The factor of a mean gradient that has come; where `meansNeedAll`, once this rank has put together all compressed ones. */
  async factorOfMean(bucket: Bucket): Promise<number> {
    if (this.meansNeedAll) await this.#allCompressed();
    return this.#meanFactor(bucket);
  }

  /** The factor of a mean gradient that only its owner has, the same on every rank. It waits until this rank has all compressed ones. */
  async factorAtOwner(bucket: Bucket): Promise<number> {
    if (this.#clipping.limit === 0) return 1;
    await this.#allCompressed();
    return this.#meanFactor(bucket);
  }

  /**
   * The factor of a mean gradient that this rank has put together from compressed messages. No θ changes before all of the step's are known:
   * it resolves when this rank has the last one, or throws on every rank where one of them is not finite.
   */
  async factorOfCompressed(bucket: Bucket, g: Tensor): Promise<number> {
    const all = this.#compressed;
    all.refused = !this.acceptMean(bucket, g) || all.refused;
    all.awaited--;
    if (all.awaited === 0) all.resolve();
    await this.#allCompressed();
    return this.#meanFactor(bucket);
  }

  /** This rank has put together all compressed mean gradients of the step. Throws on every rank if one of them is not finite. */
  async #allCompressed(): Promise<void> {
    const all = this.#compressed;
    if (all.awaited > 0) await all.promise;
    if (all.refused) throw new StepRefusedError(undefined, "the mean gradient is not finite");
  }

  #meanFactor(bucket: Bucket): number {
    const clipped = this.meansNeedAll ? this.#buckets : [bucket];
    return this.#clipping.factor(together(clipped.map((one) => this.#meanNorm(one))));
  }

  /** Of the whole gradient before clipping: of the means where gradients are averaged and this rank knows them, of its own elsewhere. */
  get norm(): number {
    const norms = this.#buckets.flatMap((bucket) => (this.#means.has(bucket) ? [this.#meanNorm(bucket)] : []));
    const own = this.#wholeOwn === undefined ? [...this.#own.values()] : [this.#wholeOwn];
    return Math.hypot(...[...own, ...norms].sort((a, b) => a - b)); // not in the order in which they came
  }

  /** n_j² of every bucket's own gradients; undefined where all gradients are averaged. */
  get ownSquares(): number[] | undefined {
    if (this.#own.size === 0) return undefined;
    return this.#buckets.map((bucket) => (this.#own.get(bucket) ?? 0) ** 2);
  }

  /** N_b */
  #estimate(b: number, previous: readonly number[]): number {
    const sum = (squares: readonly number[]) => squares.reduce((total, one) => total + one, 0);
    const known = sum(this.#buckets.slice(0, b + 1).map((bucket) => (this.#own.get(bucket) ?? 0) ** 2));
    const [part, whole] = [sum(previous.slice(0, b + 1)), sum(previous)];
    return part > 0 ? Math.sqrt((known * whole) / part) : Math.sqrt(Math.max(known, whole));
  }

  #meanNorm(bucket: Bucket): number {
    return Math.sqrt((this.#means.get(bucket) ?? []).reduce((sum, squares) => sum + squares, 0));
  }

  #compresses({ algorithm, vector, state }: Span): boolean {
    return compressesGradients(algorithm.messages(vector, this.#step, state));
  }

  #atOwner({ algorithm, vector, state }: Span): boolean {
    return averagesAtOwner(algorithm.messages(vector, this.#step, state));
  }

  /** Without a clip the norms of means that only owners have stay unknown: then those of the rank's own count. */
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

/** Whether every element and its square are finite in f32: an optimizer can work with nothing beyond that. */
export function isUsable(norm: number): boolean {
  return norm < 2 ** 63; // false for NaN
}

/** The norm of all from the norms of the parts, in this order: always the same bits. */
function together(norms: readonly number[]): number {
  return norms.length === 1 ? norms[0]! : Math.sqrt(norms.reduce((sum, one) => sum + one * one, 0));
}
