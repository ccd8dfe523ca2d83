/** Applies one algorithm, or several by parameter group, to flat parameters together with the other ranks. */
import type { Group } from "@terse/collectives";
import { type ChosenSchemes, headerBytes, meanCost, type RefusalReason, standardSchemes } from "@terse/exchange";
import { checkOptions, useTeam, useThreads } from "@terse/native-optimizers";
import { show } from "@terse/options";
import { backwardIsUnderWay, noGrad, numThreads, type Tensor, threadTeam } from "@terse/tensor";
import { agreementOnNorms, bytesOfBucket, bytesOfStep, type Sending, sentOver } from "./accounting.ts";
import { afterWarmups } from "./algorithms/warmup.ts";
import { BucketSize, fixedSize, leastElements } from "./bucket-size.ts";
import { type Bucket, bucketsOf, elementsOf } from "./buckets.ts";
import { Clipping } from "./clipping/clipping.ts";
import { GradientNorms } from "./clipping/gradient-norms.ts";
import { compareRanks } from "./fingerprint.ts";
import type { FlatParameters } from "./flat-parameters.ts";
import { type Layer, layersOfSpan } from "./layer.ts";
import { type MomentumSync, momentumSyncsOf } from "./momentum-sync.ts";
import { checkArguments, type OptimizerOptions } from "./optimizer-options.ts";
import { OverlapError, obstacle } from "./overlap.ts";
import { disposeSlice, padsOf, type Span, spansOf } from "./parameter-groups.ts";
import { type Rounds, roundsOf, worksOnOwn } from "./rounds.ts";
import { checkSaves, restoreSpans, type SavedState, type StoredState, savedStateOf } from "./saved-state.ts";
import { Step, type StepWatch } from "./step.ts";
import { notEnded, type StepReport, type TrainingOptimizer } from "./training-optimizer.ts";

/** What the caller of a step knows of it. */
interface Given {
  readonly lr: number;
  readonly loss?: number;
  readonly refusal?: RefusalReason | undefined;
  readonly norm?: number | undefined;
}

/**
 * The optimizer whose step is under way on a group. The messages of two would mix where ranks complete gradients in
 * different orders.
 */
const atWork = new WeakMap<Group, Optimizer>();

/**
 * Trains flat parameters, such as an arena's, on a group of ranks: sends what its algorithm asks for, bucket by bucket,
 * and takes the step on all ranks or on none.
 */
export class Optimizer implements TrainingOptimizer {
  /** Steps taken. */
  steps = 0;
  /** Why messages cannot leave while backward still runs, and what would let them; undefined where they can. */
  readonly obstacle: string | undefined;
  /** How large buckets are and why, once `bucket: "auto"` has chosen. */
  bucketing: string | undefined;
  /** The schemes that carry its votes and means. */
  readonly schemes: ChosenSchemes;
  /** Is told how long the parts of its steps take. It may be set between two steps. */
  watch: StepWatch | undefined;

  readonly #flat: FlatParameters;
  readonly #group: Group;
  readonly #overlaps: boolean;
  readonly #compareEvery: number;
  #comparisonIsDue = false;
  readonly #clipping: Clipping;
  readonly #spans: readonly Span[];
  #buckets: readonly Bucket[];
  #size: BucketSize | undefined; // until buckets have their final one
  readonly #pads: readonly Tensor[];
  readonly #syncs: readonly MomentumSync[];
  #down: Promise<Group> | undefined; // the group that results come down over, where several buckets are under way
  #begun: { readonly lr: number; readonly loss: number } | undefined; // given to `begin`
  #underWay: Step | undefined; // whose messages may leave during backward
  #sentBefore = { bytes: 0, messages: 0 }; // before the step that is under way
  #closed = false;
  #norms: GradientNorms | undefined; // of the last step

  constructor(flat: FlatParameters, group: Group, options: OptimizerOptions) {
    checkArguments(flat, group, options);
    const { clip = 0, clipBy = "global", overlap = "off", bucket, compareEvery = 100 } = options;
    this.#flat = flat;
    this.#group = group;
    this.schemes = { ...standardSchemes, ...options.schemes };
    this.#compareEvery = compareEvery;
    this.#clipping = new Clipping(group, clip, clipBy);
    this.#spans = spansOf(flat, group, options);
    this.#pads = padsOf(flat);
    this.#syncs = momentumSyncsOf(this.#spans, flat.segments);

    this.obstacle = obstacle(this.#spans, 0, this.#clipping);
    const laterObstacle = obstacle(this.#spans, afterWarmups, this.#clipping);
    const why = this.obstacle ?? (laterObstacle && `after the warm-up ${laterObstacle}`);
    if (overlap === "on" && why !== undefined) throw new OverlapError(`overlap is on, and ${why}`);
    this.#overlaps = overlap !== "off" && this.obstacle === undefined && group.size > 1;

    this.#buckets = bucketsOf(this.#spans, leastElements(bucket, flat, group.size, this.#clipping));
    if (bucket === "auto") {
      const fixed = fixedSize(this.#spans, this.#clipping, this.#overlaps);
      if (fixed !== undefined) throw new OverlapError(`bucket is "auto", and ${fixed}`);
      const [first] = this.#buckets as [Bucket];
      const each = bytesOfBucket(first, 0, 0, this.#sending) / elementsOf(first);
      if (this.#overlaps) this.#size = new BucketSize(group, flat.parameters.length, (n) => n * each, options.measured);
    }
    this.bytesSent(0); // schemes that cannot carry these messages throw now, and not in the first step
  }

  /**
   * Before the last backward of a step: from here on, a bucket whose gradients are complete leaves while backward works
   * on the others. `lr` and `loss` as in `step`. Sends nothing where overlap is off or not possible (`obstacle`); the
   * result is the same bit for bit.
   */
  async begin(given: { lr: number; loss?: number }): Promise<void> {
    checkOptions("begin", given, ["lr", "loss"]);
    const { lr, loss = 0 } = given ?? {};
    if (this.#begun) throw new Error("the step before has not ended: call step after each begin");
    this.#refuseSecond();
    this.#refuseUnfinished();
    this.#check(lr, loss);
    this.#begun = { lr, loss };
    if (!this.#overlaps) return;
    await this.#clipping.settle();
    // Where all own gradients must be there first, the step opens when backward has ended.
    if (this.#clipping.ownNeedAll(this.#buckets.length) && worksOnOwn(this.#spans, this.steps)) return;
    this.#underWay = await this.#open(this.#begun);
    this.#size?.begin();
    this.#underWay.follow(this.#flat);
  }

  /**
   * All ranks take the step, or none does. `loss` is this rank's, if it wants the others to stop when it is not finite.
   * Throws StepRefusedError on every rank when a loss or a gradient is not finite, or the norm of a gradient is 2^63 or
   * more: no parameter has changed then, but momenta may have, so a run goes on from its last save. After `begin`, lr
   * and loss are those it was given. `refusal`: why this rank refuses the step in any case. `norm`: that of this rank's
   * gradients, where the caller knows it; without a clip they are then not read for it. An Error where the step before,
   * or a backward, has not ended.
   */
  async step(given: Given): Promise<StepReport> {
    checkOptions("step", given, ["lr", "loss", "refusal", "norm"]);
    if (!this.#underWay) this.#refuseSecond();
    this.#refuseUnfinished();
    const enough = this.#size?.end();
    const begun = this.#begun;
    this.#begun = undefined;
    const step = this.#underWay ?? (await this.#open({ ...given, ...begun }));
    this.#underWay = undefined;
    try {
      return await this.#end(step, enough);
    } finally {
      atWork.delete(this.#group);
    }
  }

  async #end(step: Step, isMeasured: boolean | undefined): Promise<StepReport> {
    const exposedSeconds = (await step.finish()) + (await this.#synchronise());

    // Pads go along with their neighbours through every kernel; the arena promises that they stay 0.
    for (const pad of this.#pads) noGrad(() => pad.zero_());

    this.#norms = step.norms;
    const after = await this.#sent();
    const norm = agreementOnNorms(this.steps, this.#group.rank, this.#sending);
    this.steps++;
    // Its message is sent beside what comes next, and counts with this step.
    this.#clipping.agreeOn(step.norms.ownSquares);
    this.#comparisonIsDue ||= this.#compareEvery > 0 && this.steps % this.#compareEvery === 0;
    if (this.#comparisonIsDue && !this.parametersDiffer) {
      this.#comparisonIsDue = false;
      await this.compare();
    }
    if (isMeasured) await this.#resize(this.#size!);
    return {
      gradientNorm: step.norms.norm,
      bytes: after.bytes - this.#sentBefore.bytes + norm.bytes + headerBytes * norm.messages,
      messages: after.messages - this.#sentBefore.messages + norm.messages,
      exposedSeconds,
    };
  }

  /** A step that has not sent anything yet. */
  async #open({ lr, loss = 0, refusal, norm }: Given): Promise<Step> {
    this.#check(lr, loss);
    if ((atWork.get(this.#group) ?? this) !== this)
      throw new Error(
        "another optimizer's step is under way on this group, and ranks could take one's messages for the other's: end it first, or give one of them a group of its own, group.split(0)",
      );
    atWork.set(this.#group, this);
    try {
      useThreads(numThreads());
      useTeam(threadTeam());
      await this.#clipping.settle();
      // A second group of the same ranks, so that one bucket's results come down while the next one's vectors go up.
      this.#down ??= (async () => (this.#buckets.length > 1 ? (await this.#group.split(0))! : this.#group))();
      const down = await this.#down;
      for (const sync of this.#syncs) await sync.prepare(this.#group, this.steps);
      this.#sentBefore = await this.#sent();
      return new Step(this.#buckets, {
        step: this.steps,
        lr,
        loss,
        refusal,
        group: this.#group,
        down,
        memory: this.#flat.gradients,
        schemes: this.schemes,
        norms: new GradientNorms(this.#clipping, this.#spans, this.#buckets, this.steps, norm),
        watch: this.watch,
      });
    } catch (error) {
      atWork.delete(this.#group);
      throw error;
    }
  }

  /** Two steps at once would have the same number, and the first one's gradients would change while it works on them. */
  #refuseSecond(): void {
    if (atWork.get(this.#group) === this) throw new Error(notEnded);
  }

  #refuseUnfinished(): void {
    if (backwardIsUnderWay(this.#flat.parameters))
      throw new Error(
        "a backward has not ended, and its gradients would be taken unfinished: await loss.backward() first",
      );
  }

  #check(lr: number, loss: number): void {
    if (this.#closed) throw new Error("the optimizer is closed, and takes no more steps: close it after the last one");
    const rounded = typeof lr === "number" ? Math.fround(lr) : Number.NaN;
    if (!(rounded >= 0 && rounded < Number.POSITIVE_INFINITY))
      throw new RangeError(
        `lr: expected a number ≥ 0 as a 32-bit float, got ${show(lr)}${Number.isFinite(lr) ? `, which is ${rounded} there` : ""}`,
      );
    if (typeof loss !== "number")
      throw new TypeError(`loss: expected a number (of a tensor: loss.item()), got ${show(loss)}`);
  }

  /** Averages the momenta whose turn it is, and resolves to the seconds that it took. */
  async #synchronise(): Promise<number> {
    const began = performance.now();
    for (const sync of this.#syncs) await sync.synchronise(this.#group, this.steps);
    return (performance.now() - began) / 1000;
  }

  /** Cuts the buckets anew, between two steps. */
  async #resize(size: BucketSize): Promise<void> {
    this.#size = undefined;
    const { elements, why } = await size.choose();
    const whole = new Set(this.#spans);
    for (const span of this.#buckets.flatMap(({ spans }) => spans)) if (!whole.has(span)) disposeSlice(span);
    this.#buckets = bucketsOf(this.#spans, elements);
    if (this.#buckets.length > 1 && (await this.#down) === this.#group) this.#down = undefined;
    this.bucketing = why;
  }

  /** Bytes and messages until now. */
  async #sent(): Promise<{ bytes: number; messages: number }> {
    const ofVotes = await this.schemes.votes.opened(this.#group);
    const groups = new Set([this.#group, (await this.#down) ?? this.#group, ...ofVotes]);
    const ofGroups = [...groups].map((group) => group.sent());
    return sentOver([...ofGroups, ...this.#syncs.map(({ sentBeside }) => sentBeside)]);
  }

  get #sending(): Sending {
    return { buckets: this.#buckets, ranks: this.#group.size, schemes: this.schemes, clipping: this.#clipping };
  }

  get voters(): Group {
    return this.#group;
  }

  /** The ranks meet in every step. */
  meets(): boolean {
    return true;
  }

  /** Payload bytes that this rank sends in a step, by closed form; the next step's unless given. */
  bytesSent(step = this.steps): number {
    const ofMomenta = this.#syncs.reduce((sum, sync) => sum + sync.bytesSent(step, this.#group), 0);
    return bytesOfStep(step, this.#group.rank, this.#sending) + ofMomenta;
  }

  /**
   * The momenta of this rank, flat: m or M of each state that has one. They are the state's own memory, and change with
   * each step.
   */
  momenta(): readonly Tensor[] {
    return this.#spans.flatMap(({ state: { elements = {} } }) => [elements["m"] ?? elements["M"] ?? []].flat());
  }

  /** Whether some momenta of this rank are no longer its own after a step, because the ranks have averaged them. */
  averagesMomenta(step: number): boolean {
    return this.#group.size > 1 && this.#syncs.some((sync) => sync.changes(step));
  }

  /** The parameters in the order of the model, with what the last step worked on. */
  layers(): Layer[] {
    const gradientScaleOf = (name: string) => this.#norms?.ownFactorOf(name) ?? 1;
    return noGrad(() => this.#parts().flatMap((span) => layersOfSpan(span, gradientScaleOf)));
  }

  /**
   * The requests of a step, by default the next one: for each bucket, in the order in which they leave, its elements
   * and its rounds.
   */
  requests(step = this.steps): ({ readonly elements: number } & Rounds)[] {
    return this.#buckets.map((bucket) => ({
      elements: elementsOf(bucket),
      ...roundsOf(bucket, step, this.#clipping),
    }));
  }

  /** Bytes that 32-bit data parallel would send instead. */
  get denseBytes(): number {
    return meanCost(this.#flat.parameters.length, this.#group.size, this.#group.rank).bytes;
  }

  /** Whether the ranks' parameters differ until a later step makes them the same: after a local step of 0/1 Adam. */
  get parametersDiffer(): boolean {
    return this.steps > 0 && this.#spans.some(({ algorithm }) => algorithm.isLocal?.(this.steps - 1));
  }

  /**
   * Throws on every rank, naming the ranks that differ, unless all hold the same parameters bit for bit, or are to
   * differ (`parametersDiffer`).
   */
  async compare(): Promise<void> {
    if (this.parametersDiffer) return;
    await compareRanks(this.#group, this.#flat.parameters, this.steps);
  }

  /** Runs `body`: the ranks always share their parameters, but for local steps of 0/1 Adam, where each has its own. */
  shared<T>(body: () => Promise<T>): Promise<T> {
    return body();
  }

  /** This rank's state, by name, for a checkpoint: tensors as views, and numbers. */
  async state(): Promise<SavedState> {
    await this.#clipping.settle();
    const { previousSquares } = this.#clipping;
    const { tensors, scalars } = savedStateOf(this.#parts());
    return { tensors, scalars: { ...scalars, ...(previousSquares && { previousSquares }) } };
  }

  /**
   * Goes on after `steps` steps from the saves of a run's ranks, by rank. With as many ranks as before, each rank takes
   * its own save and needs no other (they may be empty). With another number, all saves are needed, and each kind of
   * state is converted as algorithms/state.ts says. SavedStateError where they belong to another optimizer or model, or
   * where an option, such as a warm-up's length, comes too late; nothing has changed then. `compressesAnew`: the saves
   * have nothing of what compresses gradients.
   */
  async restore(steps: number, saves: readonly StoredState[], { compressesAnew = false } = {}): Promise<void> {
    checkSaves(steps, saves);
    const { rank, size: ranks } = this.#group;
    const numbers = restoreSpans(this.#parts(), saves, { step: steps, rank, ranks, compressesAnew });
    this.#clipping.previousSquares = numbers["previousSquares"] as readonly number[] | undefined;
    for (const { algorithm, θ, state } of this.#parts()) algorithm.restoreParameters?.(θ, state);
    this.steps = steps;
  }

  /** The spans of all buckets, in the order of the flat. */
  #parts(): Span[] {
    return this.#buckets.flatMap(({ spans }) => spans).sort((a, b) => a.vector.offset - b.vector.offset);
  }

  /** Closes the groups that the optimizer has opened; its own group stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    if (atWork.get(this.#group) === this) atWork.delete(this.#group);
    await this.#clipping.settle().catch(() => {}); // the group has failed, and its operations throw it
    const down = await this.#down;
    if (down !== this.#group) await down?.close();
    for (const sync of this.#syncs) await sync.close();
    await this.schemes.votes.close(this.#group);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
