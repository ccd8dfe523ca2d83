/**
 * Local steps with an outer step: each rank trains by itself, and after every so many steps all ranks share what they
 * have found. Douillard et al. 2023, "DiLoCo", Algorithm 1, https://arxiv.org/abs/2311.08105; with fragments, delay and
 * mixing as in Douillard et al. 2025, "Streaming DiLoCo", Algorithm 2, https://arxiv.org/abs/2501.18512; the steps beside
 * a round kept as in Shen et al. 2019, "CoCoD-SGD", Algorithm 1, https://arxiv.org/abs/1906.12043
 *
 *   H  steps between two rounds of the same parameters     F  fragments     E = H / F  steps between two rounds
 *   τ  steps from a round's leaving to its use             α  share of a rank's own work that it keeps
 *
 *   step t:      θ ← inner step on this rank alone
 *   t = −τ mod E:   Δ ← θ̄_f − θ_f        of fragment f, the next in turn; the round leaves:
 *                   θ̄_f ← outer step with the ranks' Δ as gradients
 *   t = 0 mod E:    θ_f ← α θ_f + (1 − α) (θ̄_f + s)        when the round has arrived
 *                   s: 0, or with `rebase` this rank's steps beside the round, θ_f(t) − θ_f(t − τ)
 *
 * Both steps are optimizers like any other: the inner one on a group of one rank, the outer one on all ranks, with Δ
 * compressed as any gradient is. What a round sends was fixed when it left, and it is used at a fixed step. So the bits
 * do not depend on the clock. θ̄ has the same bits on every rank.
 *
 * Where the ranks of a host take their steps together, "this rank" is a host: θ is alike on its ranks. Its first rank
 * carries the rounds, and hands θ̄ out to the others.
 */
import { type Group, loopback } from "@terse/collectives";
import { meanCost, type RefusalReason, reasonOf, StepRefusedError, watched } from "@terse/exchange";
import { checkOptions } from "@terse/native-optimizers";
import { keep, noGrad, scope, type Tensor, zeros } from "@terse/tensor";
import { compareRanks } from "../fingerprint.ts";
import type { FlatParameters } from "../flat-parameters.ts";
import type { Layer } from "../layer.ts";
import { Optimizer } from "../optimizer.ts";
import type { OptimizerOptions } from "../optimizer-options.ts";
import type { Rounds } from "../rounds.ts";
import { checkSaves, type SavedState, type StoredState } from "../saved-state.ts";
import type { StepWatch } from "../step.ts";
import { notEnded, type StepReport, type TrainingOptimizer } from "../training-optimizer.ts";
import { type FragmentOrder, fragmentsOf } from "./fragments.ts";
import { bytesHandedOut, type HostGroups, type HostLayout, handedOut } from "./host-groups.ts";
import { RoundSchedule } from "./round-schedule.ts";
import { isPlaceOf, type PendingRound, restoreParameters, savedLocalSteps, storedLocalSteps } from "./saved-rounds.ts";
import { offsetsOf, SharedCopy } from "./shared-copy.ts";

const optionNames = [
  "inner",
  "outer",
  "outerLr",
  "syncEvery",
  "fragments",
  "order",
  "delay",
  "alpha",
  "rebase",
  "steps",
  "hosts",
] as const satisfies (keyof LocalStepsOptions)[];

/** The options of `LocalSteps`. */
export interface LocalStepsOptions {
  /** The steps of this rank, or of its host. Of a rank alone `compareEvery` and `overlap` have no effect. */
  readonly inner: OptimizerOptions;
  /** The steps that the ranks take together, one for each round; `compareEvery` counts rounds of a fragment. */
  readonly outer: OptimizerOptions;
  readonly outerLr: number; // η of each outer step
  readonly syncEvery: number; // H
  readonly fragments?: number; // F, a divisor of H; 1 unless given
  readonly order?: FragmentOrder; // "strided" unless given
  readonly delay?: number; // τ < E; 0 unless given
  readonly alpha?: number; // α in [0, 1]; 0 unless given
  /** Whether a rank's steps beside a round go on top of what it has brought. Else they are given up, but for α. */
  readonly rebase?: boolean;
  /** Of the run: without fragments and delay a round ends it, also fewer than H steps after the one before. */
  readonly steps?: number;
  /** The ranks of a host take their steps together. They are closed with the optimizer. */
  readonly hosts?: HostGroups | undefined;
}

type Sent = Pick<StepReport, "bytes" | "messages">;

/** A round that has left. */
interface UnderWay extends Pick<PendingRound, "fragment" | "drift"> {
  /** Resolves when θ̄ of the fragment has changed, with what it cost. */
  readonly arrived: Promise<Sent>;
}

export class LocalSteps implements TrainingOptimizer {
  steps = 0;
  /**
   * Called when a round leaves, with the loss of this rank's step and the round's `drift`. The round is used when its
   * promise, too, has resolved. It may be set between two steps.
   */
  beside: ((own: { loss: number; drift: number }) => Promise<void>) | undefined;
  readonly #flat: FlatParameters;
  readonly #group: Group;
  readonly #inside: Group; // this rank alone, or its host
  readonly #hosts: HostGroups | undefined;
  readonly #inner: Optimizer;
  readonly #copies: readonly SharedCopy[]; // by fragment
  readonly #outers: readonly Optimizer[]; // by fragment; none on a rank that carries no rounds
  #left: number[]; // rounds of each fragment
  readonly #schedule: RoundSchedule;
  readonly #outerLr: number;
  readonly #alpha: number;
  #watch: StepWatch | undefined;
  #taken = false; // θ̄ is that of the ranks
  #isStepping = false; // a call of `step` has not ended
  #underWay: UnderWay | undefined;
  #refusal: RefusalReason | undefined; // of this rank's own steps; the others hear of it in the next round

  /**
   * `group` carries the rounds, which travel beside other messages: it must be used for nothing else, and is closed
   * with the optimizer. Throws RangeError for options that do not fit together or the model.
   */
  constructor(flat: FlatParameters, group: Group, options: LocalStepsOptions) {
    checkOptions("LocalSteps", options, optionNames);
    for (const name of ["inner", "outer"] as const)
      if (typeof options[name]?.algorithm !== "object")
        throw new TypeError(
          `LocalSteps.${name}: expected the options of an Optimizer, such as { algorithm: ${name === "inner" ? "adamw()" : "sgd({ momentum: 0.9 })"} }`,
        );
    const { inner, outer, outerLr, syncEvery, fragments = 1, order = "strided", delay = 0, alpha = 0, hosts } = options;
    const { rebase = false } = options;
    this.#schedule = new RoundSchedule({ syncEvery, fragments, delay, steps: options.steps });
    if (!(alpha >= 0 && alpha <= 1)) throw new RangeError(`local.alpha: expected a number from 0 to 1, got ${alpha}`);
    if (alpha === 1 && (hosts?.layout.hosts ?? group.size) > 1)
      throw new RangeError("local.alpha: with 1 a rank never uses what the others send; take less, 0 for example");
    this.#flat = flat;
    this.#group = group;
    this.#outerLr = outerLr;
    this.#alpha = alpha;
    this.#hosts = hosts;
    this.#inside = hosts?.inside ?? loopback(1)[0]!;
    this.#inner = new Optimizer(flat, this.#inside, hosts ? inner : { ...inner, overlap: "off", compareEvery: 0 });
    const parts = fragmentsOf(flat.segments, fragments, order);
    const longest = Math.max(...parts.map((segments) => offsetsOf(segments).at(-1)!));
    const differences = keep(zeros([longest], { device: flat.parameters.device }));
    const sent = rebase && delay > 0 ? keep(zeros([longest], { device: flat.parameters.device })) : undefined;
    this.#copies = parts.map((segments) => new SharedCopy(flat, segments, differences, sent));
    const carrying = hosts ? hosts.between : group;
    this.#outers = carrying
      ? this.#copies.map((copy) => new Optimizer(copy, carrying, { ...outer, overlap: "off" }))
      : [];
    this.#left = this.#copies.map(() => 0);
  }

  /** Whose steps are taken together: a rank's own, or a host's. */
  get within(): "rank" | "host" {
    return this.#hosts ? "host" : "rank";
  }

  /** The hosts, where their ranks step together. */
  get layout(): HostLayout | undefined {
    return this.#hosts?.layout;
  }

  get obstacle(): string | undefined {
    return this.#hosts && this.#inner.obstacle;
  }

  get bucketing(): string | undefined {
    return this.#inner.bucketing;
  }

  /** Bytes of what it has besides the states of its optimizers: θ̄, and of the largest fragment Δ, and θ of a round. */
  get copyBytes(): number {
    const lengths = this.#copies.map(({ parameters }) => parameters.length);
    const ofRound = this.#copies[0]!.sent ? 2 : 1;
    return 4 * (lengths.reduce((sum, n) => sum + n, 0) + ofRound * Math.max(...lengths));
  }

  get schemes(): Optimizer["schemes"] {
    return (this.#outers[0] ?? this.#inner).schemes;
  }

  get denseBytes(): number {
    return meanCost(this.#flat.parameters.length, this.#group.size, this.#group.rank).bytes;
  }

  /** Those of a round. A host's own votes are counted on that host alone. */
  get voters(): Group | undefined {
    return this.#hosts ? this.#hosts.between : this.#group;
  }

  set watch(watch: StepWatch | undefined) {
    this.#watch = watch;
    this.#inner.watch = watch && ownParts(watch, this.within);
    for (const outer of this.#outers) outer.watch = watch;
  }

  get watch(): StepWatch | undefined {
    return this.#watch;
  }

  /** What the ranks of a host send each other may leave during backward; a round does not. */
  async begin(given: { lr: number; loss?: number }): Promise<void> {
    if (this.#isStepping) throw new Error(notEnded);
    this.#take();
    if (!this.#refusal) await this.#inner.begin(given);
  }

  async step(given: { lr: number; loss?: number }): Promise<StepReport> {
    checkOptions("step", given, ["lr", "loss"]);
    if (this.#isStepping) throw new Error(notEnded);
    this.#isStepping = true;
    try {
      return await this.#step(given ?? {});
    } finally {
      this.#isStepping = false;
    }
  }

  async #step({ lr, loss = 0 }: { lr: number; loss?: number }): Promise<StepReport> {
    this.#take();
    const own = await this.#ownStep(lr, loss);
    this.steps++;
    if (this.#schedule.leaves(this.steps) && !this.#isUnderWay()) this.#leave(loss);
    if (!this.#schedule.isUsed(this.steps)) return own;
    if (!this.#underWay) this.#leave(loss); // its moment was before this optimizer's first step
    const began = performance.now();
    const { fragment, drift, arrived } = this.#underWay!;
    const { bytes, messages } = await arrived.catch((error: unknown) => {
      this.#underWay = undefined; // it has changed nothing
      if (!(error instanceof StepRefusedError)) throw error;
      throw new StepRefusedError(error.rank, error.reason, "What the ranks share is that of the round before");
    });
    const exposedSeconds = (performance.now() - began) / 1000;
    this.#mix();
    return {
      gradientNorm: own.gradientNorm,
      bytes: own.bytes + bytes,
      messages: own.messages + messages,
      exposedSeconds: own.exposedSeconds + exposedSeconds,
      round: { fragment, drift, bytes },
    };
  }

  /** This rank's own step. A refused one is not taken, and no other follows it until all ranks refuse the round. */
  async #ownStep(lr: number, loss: number): Promise<StepReport> {
    if (this.#refusal) return refused;
    try {
      return await this.#inner.step({ lr, loss });
    } catch (error) {
      if (!(error instanceof StepRefusedError)) throw error;
      this.#refusal = reasonOf(error);
      return refused;
    }
  }

  /** Whether the round that would leave now has left before the run went on, with a longer delay. */
  #isUnderWay(): boolean {
    return this.#underWay?.fragment === this.#schedule.fragmentAt(this.steps);
  }

  /** Sends the difference of the fragment whose turn it is. */
  #leave(loss: number): void {
    if (this.#underWay) this.#mix();
    const fragment = this.#schedule.fragmentAt(this.steps);
    const drift = this.#update(() => {
      this.#copies[fragment]!.remember();
      return this.#copies[fragment]!.subtract();
    });
    const refusal = this.#refusal;
    this.#left[fragment]!++;
    // A scope of its own: it lasts as long as the round, which may outlive the step that it leaves in.
    const round = scope(() => this.#carry(fragment, { refusal, norm: drift }));
    const arrived = Promise.all([round, this.beside?.({ loss, drift })]).then(([report]) => report);
    arrived.catch(() => {}); // `step` throws it
    this.#underWay = { fragment, drift, arrived };
  }

  /** θ̄ of the fragment ← the outer step, on all ranks. Without an outer step this rank gets what another has. */
  #carry(fragment: number, known: { refusal: RefusalReason | undefined; norm: number }): Promise<Sent> {
    const outer = this.#outers[fragment];
    const step = async (): Promise<Sent> => (await outer?.step({ lr: this.#outerLr, ...known })) ?? refused;
    return this.#hosts ? handedOut(this.#hosts, this.#copies[fragment]!.parameters, step) : step();
  }

  /** The rank goes on from the shared copy of the fragment that was under way. */
  #mix(): void {
    const { fragment } = this.#underWay!;
    this.#underWay = undefined;
    this.#update(() => this.#copies[fragment]!.mix(this.#alpha));
  }

  /** Runs `body` as a part of the update. */
  #update<T>(body: () => T): T {
    return watched(this.#watch?.bucket(0), "update", body);
  }

  /** θ̄ ← θ, before anything else uses it. */
  #take(): void {
    if (this.#taken) return;
    this.#taken = true;
    for (const copy of this.#copies) copy.take();
  }

  /** Waits for a round that is under way. Then θ̄ is a function of the step alone. */
  async #settle(): Promise<void> {
    this.#take();
    await this.#underWay?.arrived;
  }

  /** The ranks meet where a round is used. */
  meets(step: number): boolean {
    return this.#schedule.isUsed(step + 1);
  }

  bytesSent(step = this.steps): number {
    const inside = this.bytesInside(step);
    const round = this.#schedule.roundOf(step);
    if (!round) return inside;
    const { fragment, number } = round;
    const between = this.#outers[fragment]?.bytesSent(number) ?? 0;
    return inside + between + bytesHandedOut(this.#hosts, this.#copies[fragment]!.parameters.length);
  }

  /** Of `bytesSent` what the ranks of a host send each other, to take the step together. */
  bytesInside(step: number): number {
    return this.#inner.bytesSent(step);
  }

  /** Those of a round, which the ranks that carry it make. */
  requests(step = this.steps): ({ readonly elements: number } & Rounds)[] {
    const round = this.#schedule.roundOf(step);
    return (round && this.#outers[round.fragment]?.requests(round.number)) ?? [];
  }

  momenta(): readonly Tensor[] {
    return this.#inner.momenta();
  }

  averagesMomenta(step: number): boolean {
    return this.#inner.averagesMomenta(step);
  }

  /** Of this rank's own steps, in which nothing is voted on where it is alone. */
  layers(): Layer[] {
    if (this.#hosts) return this.#inner.layers();
    return this.#inner.layers().map((layer) => {
      const { votes: _, ...algorithm } = layer.algorithm;
      return Object.assign(Object.create(layer) as Layer, { algorithm });
    });
  }

  /** Compares θ̄. */
  async compare(): Promise<void> {
    await this.#settle();
    for (const { parameters } of this.#copies) await compareRanks(this.#group, parameters, this.steps);
  }

  /** Runs `body` while the model has θ̄, and then gives it back its own θ. */
  async shared<T>(body: () => Promise<T>): Promise<T> {
    await this.#settle();
    using own = keep(noGrad(() => this.#flat.parameters.clone()));
    for (const copy of this.#copies) copy.show();
    try {
      return await body();
    } finally {
      noGrad(() => this.#flat.parameters.copy_(own));
    }
  }

  async state(): Promise<SavedState> {
    await this.#settle();
    const inner = await this.#inner.state();
    const outers = await Promise.all(this.#outers.map((outer) => outer.state()));
    const underWay = this.#underWay;
    const pending = underWay && { ...underWay, ...(await underWay.arrived) };
    const copy = pending && this.#copies[pending.fragment];
    return savedLocalSteps({
      inner,
      outers,
      flat: this.#flat,
      rounds: this.#left,
      pending,
      sent: copy?.sent && { parameters: copy.sent, segments: copy.segments },
      refusal: this.#refusal,
      layout: this.layout,
    });
  }

  /**
   * The model must have θ̄, as saves have it. From saves of a run without local steps all ranks go on at θ̄, with the
   * mean of the ranks' inner state, and a first outer step.
   */
  async restore(steps: number, saves: readonly StoredState[]): Promise<void> {
    checkSaves(steps, saves);
    const { rank, size: ranks } = this.#group;
    const [fragments, layout] = [this.#copies.length, this.layout];
    const { segments } = this.#flat;
    const stored = storedLocalSteps(saves, { rank, ranks, fragments, segments, layout });
    await this.#inner.restore(steps, stored?.inner ?? saves);
    for (const [i, outer] of this.#outers.entries()) if (stored) await outer.restore(stored.rounds[i]!, stored.outers);
    this.#left = [...(stored?.rounds ?? this.#left.map(() => 0))];
    this.#taken = true;
    for (const copy of this.#copies) copy.take();
    this.steps = steps;
    this.#refusal = stored?.refusal;
    const pending = stored?.pending;
    this.#underWay = pending && { ...pending, arrived: Promise.resolve(pending) };
    this.#schedule.goesOn(steps, stored?.rounds, pending !== undefined);
    if (stored) restoreParameters(this.#flat, stored.θ);
    const copy = pending && this.#copies[pending.fragment]!;
    copy?.remember();
    if (copy?.sent) restoreParameters({ parameters: copy.sent, segments: copy.segments }, stored!.sent);
  }

  /** Whether a rank that has saved this stepped together with the ranks of this one: else it may have another state. */
  isPlaceOf(saved: StoredState): boolean {
    return isPlaceOf(saved, this.layout);
  }

  async close(): Promise<void> {
    await this.#underWay?.arrived.catch(() => {}); // the group has failed, and its operations throw it
    await this.#inner.close();
    for (const outer of this.#outers) await outer.close();
    await Promise.all([this.#hosts?.handOut.close(), this.#hosts?.between?.close()]);
    await this.#inside.close();
    await this.#group.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const refused = { gradientNorm: Number.NaN, bytes: 0, messages: 0, exposedSeconds: 0 };

/**
 * What the steps show that a rank or a host takes by itself: no votes, which at most the ranks of the host count. A
 * rank alone sends no messages, though they pass an exchange.
 */
function ownParts(watch: StepWatch, within: LocalSteps["within"]): StepWatch {
  return {
    bucket: (place) => ({
      wantsVotes: false,
      votes: () => {},
      saw: (part, began, ended) => {
        if (part !== "wire" || within === "host") watch.bucket(place).saw(part, began, ended);
      },
    }),
  };
}
