/**
 * One algorithm (or several, by parameter group) at work on a model's arena, together with the other ranks.
 * What all algorithms share lives here once: groups, clipping, refusing a bad step, counting, comparing the ranks.
 */
import type { Group } from "@terse/collectives";
import {
  type ChosenSchemes,
  type Measured,
  meanBytes,
  openExchange,
  type RefusalReason,
  type StepExchange,
  standardSchemes,
} from "@terse/exchange";
import { useThreads } from "@terse/native-optimizers";
import { type Arena, keep, noGrad, numThreads, type Segment, type Tensor } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, State } from "./algorithm.ts";
import { BucketSize } from "./bucket-size.ts";
import { type Bucket, bucketsOf, dispose, layersOf, obstacle, type Span } from "./buckets.ts";
import { clipFactor, norm, together, usable } from "./clipping.ts";
import { compareRanks } from "./fingerprint.ts";
import { MomentumSync } from "./momentum-sync.ts";
import { type Departure, StepUnderWay } from "./step-under-way.ts";

export interface OptimizerOptions {
  algorithm: Algorithm;
  /** The first group that matches a segment takes it; the others go to `algorithm`. */
  groups?: readonly { match: (segment: Segment) => boolean; algorithm: Algorithm }[];
  /** Largest Euclidean norm of the gradient: of the mean for algorithms that average it, of a rank's own otherwise. 0: none. */
  clip?: number;
  /** Whose norm: the whole gradient's ("global", the default), or each bucket's, which lets buckets of votes leave one by one. */
  clipBy?: "global" | "bucket";
  /**
   * Whether buckets leave while backward still runs (`begin`): "auto" where the method allows it, "on" or an error that says what does
   * not. "off" (the default) gives the same parameters bit for bit.
   */
  overlap?: "auto" | "on" | "off";
  /**
   * Least elements of a bucket; by default a sixteenth of the model, and at least 256 Ki. "auto": that to begin with, and after a few steps
   * what leaves the least to wait for, by how long backward took and what the network costs (`bucketing` says it). What votes decide does
   * not depend on it; means of three ranks and more are added in another order, which shows in their last bits.
   */
  bucket?: number | "auto";
  /** What `measureLink` found on the group, for `bucket: "auto"`, which else measures for itself. */
  measured?: Measured;
  /** What carries votes and means; the standard schemes unless given. Its groups are closed with the optimizer. */
  schemes?: Partial<ChosenSchemes>;
  /** Compare the parameters' fingerprints across ranks after every so many steps; 0 never. Default 100. */
  compareEvery?: number;
}

/** Messages were to leave while backward still runs, and the method does not allow it. The message says what would. */
export class OverlapError extends Error {
  override name = "OverlapError";
}

const leastBucket = 2 ** 18; // elements: 32 KiB of signs, which even a fast link takes longer for than for its latency
const mostBuckets = 16; // small enough that what a bucket is encoded from is still in the cache

/** What one step cost and saw, on this rank. */
export interface StepReport {
  readonly gradientNorm: number; // before clipping
  readonly bytes: number; // sent: payload and headers
  readonly messages: number;
  readonly exposedSeconds: number; // of waiting for messages after backward had ended
}

interface Opened {
  readonly step: StepUnderWay;
  readonly norms: number[]; // of the gradients that it has seen, before clipping
  readonly before: { readonly bytes: number; readonly messages: number }; // sent until then
}

/** What all buckets of a step share. */
interface Setting {
  readonly lr: number;
  readonly loss: number;
  readonly gather: Group;
  readonly norms: number[];
  readonly meanNorms: Map<Bucket, number>; // of the means that have come
  readonly wholeNorm: () => number; // of the whole gradient, once backward has ended
}

/** Whose step is under way on a group: messages of two would mix where ranks' gradients are complete in another order. */
const atWork = new WeakMap<Group, Optimizer>();

export class Optimizer implements AsyncDisposable {
  /** Steps taken. */
  steps = 0;
  /** Why messages cannot leave while backward still runs, and what would let them; undefined where they can. */
  readonly obstacle: string | undefined;
  /** How large buckets are and why, once `bucket: "auto"` has seen enough. */
  bucketing: string | undefined;

  readonly #arena: Arena;
  readonly #group: Group;
  readonly #clip: number;
  readonly #clipBy: "global" | "bucket";
  readonly #schemes: ChosenSchemes;
  readonly #overlaps: boolean;
  readonly #clipsWhole: boolean; // one norm for several buckets
  readonly #compareEvery: number;
  readonly #spans: readonly Span[];
  #buckets: readonly Bucket[];
  #sizing: { readonly size: BucketSize; began: number } | undefined; // until buckets have the size that they keep
  readonly #pads: readonly Tensor[];
  readonly #syncs: readonly MomentumSync[];
  #gather: Promise<Group> | undefined; // the group that results go over, where several buckets are under way
  #underWay: (Opened & { stop: () => void }) | undefined;

  constructor(arena: Arena, group: Group, options: OptimizerOptions) {
    const { algorithm, groups = [], clip = 0, clipBy = "global", overlap = "off", compareEvery = 100 } = options;
    this.#arena = arena;
    this.#group = group;
    this.#clip = clip;
    this.#clipBy = clipBy;
    this.#schemes = { ...standardSchemes, ...options.schemes };
    this.#compareEvery = compareEvery;
    const of = (segment: Segment) => groups.find(({ match }) => match(segment))?.algorithm ?? algorithm;
    this.#spans = spansOf(arena, of);
    this.#pads = padsOf(arena);
    this.#syncs = syncsOf(this.#spans, arena);
    const algorithms = [...new Set(this.#spans.map((span) => span.algorithm))];
    this.obstacle = obstacle(algorithms, clip, clipBy);
    if (overlap === "on" && this.obstacle !== undefined) throw new OverlapError(`overlap is on, and ${this.obstacle}`);
    const elements = arena.parameters.length;
    const usual = Math.max(leastBucket, Math.ceil(elements / mostBuckets));
    const bucket = options.bucket === undefined || options.bucket === "auto" ? usual : options.bucket;
    // When nothing leaves before backward has ended, the norm of all own gradients is known by then. Means beside them stay with them.
    const cut = algorithms.every(({ gradient }) => gradient === "own")
      ? obstacle(algorithms, 0, clipBy)
      : this.obstacle;
    this.#buckets = bucketsOf(this.#spans, cut === undefined ? bucket : Number.POSITIVE_INFINITY);
    this.#clipsWhole = clip > 0 && clipBy === "global" && this.#buckets.length > 1;
    this.#overlaps = overlap !== "off" && this.obstacle === undefined && group.size > 1;
    if (options.bucket === "auto" && clip > 0 && clipBy === "bucket")
      throw new OverlapError(
        'bucket is "auto", and what each bucket is clipped to would depend on its size: give a number, or set clip to 0',
      );
    if (options.bucket === "auto" && this.#overlaps) {
      const [{ spans }] = this.#buckets as [Bucket];
      const each = bytesOf(spans, group.size, 0, this.#schemes) / spans.reduce((sum, { length }) => sum + length, 0);
      this.#sizing = { size: new BucketSize(group, elements, (n) => n * each, options.measured), began: 0 };
    }
    void this.bytesSent; // schemes that cannot carry this say so now, and not in the first step
  }

  /**
   * Before the last backward of a step: from here on, a bucket whose gradients are complete leaves while backward works on the others.
   * `lr` and `loss` as in `step`. Does nothing where overlap is off or not possible (`obstacle`); the result is the same bit for bit.
   */
  async begin({ lr, loss = 0 }: { lr: number; loss?: number }): Promise<void> {
    if (!this.#overlaps) return;
    if (this.#underWay) throw new Error("the step before has not ended: call step after each begin");
    const opened = await this.#open(lr, loss);
    if (this.#sizing) this.#sizing.began = performance.now();
    const { segments } = this.#arena;
    this.#underWay = { ...opened, stop: this.#arena.onGradientReady((i) => opened.step.ready(segments[i]!.name)) };
  }

  /**
   * All ranks take the step, or none does. `loss` is this rank's, if it wants the others to stop when it is not finite.
   * Throws StepRefusedError on every rank when a loss or a gradient is not finite, or a gradient so large that its square is
   * not: no parameter has changed then, but momenta may have, so a run goes on from its last save. After `begin`, lr and loss are
   * those it was given.
   */
  async step({ lr, loss = 0 }: { lr: number; loss?: number }): Promise<StepReport> {
    const enough = this.#underWay && this.#sizing?.size.saw((performance.now() - this.#sizing.began) / 1000);
    const underWay = this.#underWay ?? (await this.#open(lr, loss));
    this.#underWay?.stop();
    this.#underWay = undefined;
    let exposedSeconds: number;
    try {
      exposedSeconds = (await underWay.step.finish()) + (await this.#synchronise());
    } finally {
      atWork.delete(this.#group);
    }

    // Pad lanes go along with their neighbours through every kernel; the arena promises that they stay 0.
    for (const pad of this.#pads) noGrad(() => pad.zero_());

    this.steps++;
    const after = await this.#sent();
    if (this.#compareEvery > 0 && this.steps % this.#compareEvery === 0) await this.compare();
    if (enough) await this.#resize(this.#sizing!.size);
    return {
      gradientNorm: Math.hypot(...underWay.norms.sort((a, b) => a - b)), // not in the order in which they came
      bytes: after.bytes - underWay.before.bytes,
      messages: after.messages - underWay.before.messages,
      exposedSeconds,
    };
  }

  /** Cuts the buckets anew, between two steps. */
  async #resize(size: BucketSize): Promise<void> {
    this.#sizing = undefined;
    const { elements, why } = await size.choose();
    const whole = new Set(this.#spans);
    for (const span of this.#buckets.flatMap(({ spans }) => spans)) if (!whole.has(span)) dispose(span);
    this.#buckets = bucketsOf(this.#spans, elements);
    if (this.#buckets.length > 1 && (await this.#gather) === this.#group) this.#gather = undefined;
    this.bucketing = why;
  }

  /** Averages the momenta whose turn it is, and resolves to the seconds that it took. */
  async #synchronise(): Promise<number> {
    const began = performance.now();
    for (const sync of this.#syncs) await sync.synchronise(this.#group, this.steps);
    return (performance.now() - began) / 1000;
  }

  /** A step of which nothing has left. */
  async #open(lr: number, loss: number): Promise<Opened> {
    if ((atWork.get(this.#group) ?? this) !== this)
      throw new Error(
        "another optimizer's step is under way on this group, and ranks could take one's messages for the other's: end it first, or give one of them a group of its own, group.split(0)",
      );
    atWork.set(this.#group, this);
    useThreads(numThreads());
    // A second group of the same ranks, so that what one bucket's vote decided and the next bucket's votes share the wire.
    this.#gather ??= (async () => (this.#buckets.length > 1 ? (await this.#group.split(0))! : this.#group))();
    const gather = await this.#gather;
    for (const sync of this.#syncs) await sync.prepare(this.#group, this.steps);
    const norms: number[] = [];
    const meanNorms = new Map<Bucket, number>();
    let whole: number | undefined;
    const wholeNorm = () => {
      whole ??= norm(this.#spans.map(({ g }) => g));
      return whole;
    };
    const step = new StepUnderWay(this.#buckets, (bucket) =>
      this.#depart(bucket, { lr, loss, gather, norms, meanNorms, wholeNorm }),
    );
    return { step, norms, before: await this.#sent() };
  }

  /** Asks for a bucket's messages. */
  #depart(bucket: Bucket, { lr, loss, gather, norms, meanNorms, wholeNorm }: Setting): Departure {
    const { spans } = bucket;
    const gradients = (whose: Algorithm["gradient"]) =>
      spans.filter(({ algorithm }) => algorithm.gradient === whose).map(({ g }) => g);
    const own = gradients("own");
    const averages = own.length < spans.length;
    // Means show on all ranks whether they are finite; a rank has to look at its own share only where votes leave with them.
    const looked = own.length > 0 ? [...own, ...gradients("mean")] : [];
    const ownNorm = this.#clipsWhole && own.length > 0 ? wholeNorm() : norm(own);
    if (own.length > 0 && !(this.#clipsWhole && norms.length > 0)) norms.push(ownNorm);
    const exchange = openExchange(this.#group, {
      gather,
      schemes: this.#schemes,
      withheld: true,
      region: this.#arena.gradients,
      accepts: (means) => {
        const meanNorm = norm(means);
        // Gradients come first; what a step averages afterwards is something else.
        if (averages && !meanNorms.has(bucket)) {
          meanNorms.set(bucket, meanNorm);
          norms.push(meanNorm);
        }
        return usable(meanNorm);
      },
    });

    const refusal = refusalOf(loss, looked.length > own.length ? norm(looked) : ownNorm);
    if (refusal) {
      exchange.refuse(refusal);
      poison(spans);
    }
    const gradientScale = refusal ? 1 : clipFactor(ownNorm, this.#clip);
    const seen: OptimizerExchange = Object.assign(Object.create(exchange) as StepExchange, {
      meanGradient: async (g: Tensor) => {
        await exchange.mean(g);
        // The gradients of all spans were asked for in one turn, so their norm is the bucket's. And nothing is handed out before
        // everything has come, so here all buckets' norms are known.
        const clipped = this.#clipBy === "bucket" ? [bucket] : this.#buckets;
        return clipFactor(together(clipped.map((one) => meanNorms.get(one) ?? 0)), this.#clip);
      },
    });
    const context = { step: this.steps, lr, gradientScale };
    const steps = spans.map(({ algorithm, θ, g, state, layers }) =>
      algorithm.step(θ, g, state, seen, { ...context, layers }),
    );
    return { exchange, applied: Promise.all(steps) };
  }

  async #sent(): Promise<Opened["before"]> {
    const gather = await this.#gather;
    const beside = await this.#schemes.votes.opened(this.#group);
    const groups = gather && gather !== this.#group ? [this.#group, gather, ...beside] : [this.#group, ...beside];
    return [...groups.map((group) => group.sent()), ...this.#syncs.map(({ sentBeside }) => sentBeside)].reduce(
      (sum, { bytes, headerBytes, messages }) => ({
        bytes: sum.bytes + bytes + headerBytes,
        messages: sum.messages + messages,
      }),
      {
        bytes: 0,
        messages: 0,
      },
    );
  }

  /** What carries its votes and means. */
  get schemes(): ChosenSchemes {
    return this.#schemes;
  }

  /** Closes what the optimizer has opened; the group stays open. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (atWork.get(this.#group) === this) atWork.delete(this.#group);
    const gather = await this.#gather;
    if (gather !== this.#group) await gather?.close();
    for (const sync of this.#syncs) await sync.close();
    await this.#schemes.votes.close(this.#group);
  }

  /** Throws on every rank, naming the ranks that differ, unless all hold the same parameters bit for bit. */
  async compare(): Promise<void> {
    await compareRanks(this.#group, this.#arena.parameters, this.steps);
  }

  /**
   * Payload bytes that this rank sends in a step, as closed form: votes leave as one message, neighbouring means too. Where momenta are
   * averaged every few steps, the mean of so many steps.
   */
  get bytesSent(): number {
    const { size, rank } = this.#group;
    const synchronising = this.#syncs.reduce((sum, sync) => sum + sync.bytesSent(size, rank), 0);
    return this.#buckets.reduce((sum, { spans }) => sum + bytesOf(spans, size, rank, this.#schemes), synchronising);
  }

  /** What 32-bit data parallel would send instead. */
  get denseBytes(): number {
    return meanBytes(this.#arena.parameters.length, this.#group.size, this.#group.rank);
  }

  /** Every tensor of the state as views by name, `<state>.<parameter>`, for the checkpoint of this rank. */
  state(): Map<string, Tensor> {
    const views = new Map<string, Tensor>();
    for (const { segments, offset, state, algorithm } of this.#spans)
      for (const [key, tensor] of Object.entries(state))
        for (const segment of segments)
          views.set(
            `${key}.${segment.name}`,
            algorithm.splits === "at segments" ? tensor : tensor.narrow(0, segment.offset - offset, segment.length),
          );
    return views;
  }
}

/** One for each algorithm that has it. */
function syncsOf(spans: readonly Span[], { segments }: Arena): MomentumSync[] {
  return [...new Set(spans.map(({ algorithm }) => algorithm))].flatMap((algorithm) => {
    const { momentumSync } = algorithm;
    if (!momentumSync || momentumSync.segments === "none") return [];
    const own = spans.filter((span) => span.algorithm === algorithm);
    return [new MomentumSync(momentumSync, own, segments)];
  });
}

/** Payload bytes of spans that leave together: votes as one message, neighbouring means too. */
function bytesOf(spans: readonly Span[], size: number, rank: number, schemes: ChosenSchemes): number {
  const votes = new Map<Algorithm["bytesSent"], number>();
  let bytes = 0;
  let run = 0; // elements of neighbouring means so far
  for (const [i, { algorithm, length }] of spans.entries()) {
    const { bytesSent, gradient, sends } = algorithm;
    if (sends === "sums") bytes += bytesSent(length, size, rank, schemes);
    else if (gradient === "own") votes.set(bytesSent, (votes.get(bytesSent) ?? 0) + 64 * Math.ceil(length / 64));
    else {
      run += length;
      const next = spans[i + 1]?.algorithm;
      if (next?.gradient === "mean" && next.sends !== "sums") continue;
      bytes += meanBytes(run, size, rank, schemes);
      run = 0;
    }
  }
  for (const [closedForm, n] of votes) bytes += closedForm(n, size, rank, schemes);
  return bytes;
}

/**
 * The others wait for this rank's messages, so it still sends them: votes about nothing, with its refusal in their
 * headers, and means that are not finite for anybody.
 */
function poison(spans: readonly Span[]): void {
  for (const { algorithm, g } of spans) noGrad(() => (algorithm.gradient === "own" ? g.zero_() : g.fill_(Number.NaN)));
}

function refusalOf(loss: number, norm: number): RefusalReason | undefined {
  if (!Number.isFinite(loss)) return "the loss is not finite";
  return usable(norm) ? undefined : "the gradient is not finite";
}

/** Runs of neighbouring segments that go to the same algorithm; single segments where it may not be cut elsewhere. */
function spansOf(arena: Arena, algorithmOf: (segment: Segment) => Algorithm): Span[] {
  const { segments, parameters, gradients } = arena;
  const runs: { algorithm: Algorithm; segments: Segment[] }[] = [];
  for (const segment of segments) {
    const algorithm = algorithmOf(segment);
    const last = runs.at(-1);
    if (last && last.algorithm === algorithm && algorithm.splits !== "at segments") last.segments.push(segment);
    else runs.push({ algorithm, segments: [segment] });
  }
  return runs.map(({ algorithm, segments: mine }) => {
    const { offset } = mine[0]!;
    const whole = algorithm.splits === "at segments";
    if (algorithm.splits === "nowhere" && mine.length !== segments.length)
      throw new Error(
        `${algorithm.name} needs the whole model as one vector: it cannot share it with parameter groups`,
      );
    // A run reaches to where the next one starts: the pad lanes between are zeros and belong to somebody.
    const next = segments[segments.indexOf(mine.at(-1)!) + 1];
    const length = whole ? mine[0]!.length : (next?.offset ?? parameters.length) - offset;
    const view = (flat: Tensor) => keep(flat.narrow(0, offset, length).view(whole ? mine[0]!.shape : [length]));
    const θ = view(parameters);
    const layers = layersOf(mine, offset, length);
    return { algorithm, segments: mine, offset, length, layers, θ, g: view(gradients), state: kept(algorithm.init(θ)) };
  });
}

/** Outlives the scope in which the optimizer was made. */
function kept(state: State): State {
  for (const tensor of Object.values(state)) keep(tensor);
  return state;
}

/** The lanes of the parameters between one segment's end and the next one's start. */
function padsOf({ segments, parameters }: Arena): Tensor[] {
  const ends = [...segments.slice(1).map(({ offset }) => offset), parameters.length];
  return segments.flatMap(({ offset, length }, i) => {
    const from = offset + length;
    return from < ends[i]! ? [keep(parameters.narrow(0, from, ends[i]! - from))] : [];
  });
}
