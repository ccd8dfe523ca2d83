/**
 * The exchange of a step: an optimizer's requests to the other ranks, and the messages that carry them. Requests that
 * are made in one iteration of the event loop form a round. Those of one kind travel together as one message, in the
 * order in which they were made: the order of the segments, the same on every rank.
 *
 * How to read on. `requests` makes a request of each call, `#add` puts it into a round, `#carry` carries the kinds of
 * the round one after the other. What a kind does is in one file of kinds/, and the runner of its stages in
 * run-stages.ts.
 */
import { setImmediate as nextIteration } from "node:timers/promises";
import type { Floats } from "@terse/codecs";
import type { BufferLike, Group, NativeBuffer } from "@terse/collectives";
import type { ChosenSchemes } from "./chosen-schemes.ts";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";
import { ExchangeContext } from "./exchange-context.ts";
import { agree } from "./kinds/agree.ts";
import { type Among, checkMembers, gatherAmong, meanAmong, reduceAmong } from "./kinds/among.ts";
import {
  type ComputedMeanOptions,
  computedMean,
  type FromOwnerOptions,
  fromOwner,
  type MeanAtOwnerOptions,
  meanAtOwner,
} from "./kinds/computed-mean.ts";
import type { Kind, KindResources } from "./kinds/kind.ts";
import type { LevelsOptions, SumOfLevelsOptions } from "./kinds/levels.ts";
import { type MeanOptions, mean } from "./kinds/mean.ts";
import {
  type ChunkWire,
  type ErrorCompensation,
  type MeanOfWires,
  meanErrorCompensated,
  meanOfWires,
} from "./kinds/mean-error-compensated.ts";
import { signOfLevels } from "./kinds/sign-of-levels.ts";
import { type SparseOptions, sparse } from "./kinds/sparse.ts";
import { type SumOptions, sum } from "./kinds/sum.ts";
import { type SumOfFieldsOptions, sumOfFields } from "./kinds/sum-of-fields.ts";
import { type SumByOwnersOptions, sumOfLevels } from "./kinds/sum-of-levels.ts";
import { sumOfLevelsDirect } from "./kinds/sum-of-levels-direct.ts";
import { vote } from "./kinds/vote.ts";
import type { PackedBits, Tally, Ternary } from "./packed-bits.ts";
import type { RefusalReason } from "./refusal.ts";
import { retained } from "./retained.ts";
import { standardSchemes } from "./schemes.ts";
import type { Watch } from "./watch.ts";

/**
 * The result of a vote without a majority. An algorithm resolves its own `alternate` to plus or minus, by the step,
 * before it requests a vote.
 */
export type Tie = "plus" | "minus" | "zero";

/**
 * What ranks can ask of each other in a step: means, votes and sums of vectors. All ranks make the same requests in the
 * same order, and all results are the same bits on every rank.
 *
 * Vectors, errors and `into` belong to the exchange until the promise settles. A tensor among them may be disposed
 * meanwhile: the exchange keeps its memory. A NaN in a vector makes every rank throw a StepRefusedError; errors and
 * `into` may have changed then. Only a mean in f32 has no check of its own: without `accept` its result has the NaN, on
 * every rank.
 */
export interface Exchange {
  readonly ranks: number;

  /** x ← mean over ranks of x. */
  mean(x: BufferLike, options?: MeanOptions): Promise<void>;

  /** into ← f(mean over ranks of x), computed once, by its owner, who sends it to all; into is x unless given. */
  computedMean(x: Floats, options: ComputedMeanOptions): Promise<void>;

  /** x ← mean over ranks of x, on its owner alone. The other ranks keep their x. */
  meanAtOwner(x: Floats, options: MeanAtOwnerOptions): Promise<void>;

  /** x ← the owner's x. If that is not finite, all ranks throw a StepRefusedError. */
  fromOwner(x: Floats, options: FromOwnerOptions): Promise<void>;

  /** The sign of the majority of the ranks; takes over u's memory. */
  majority(u: PackedBits, options: { tie: "plus" | "minus" }): Promise<PackedBits>;
  majority(u: PackedBits, options: { tie: Tie }): Promise<PackedBits | Ternary>;

  /** The number of ranks that voted plus; takes over u's memory. */
  tally(u: PackedBits): Promise<Tally>;

  /** into += scale · Σ x, through a codec on the way up and on the way down. */
  sum(x: Floats, options: SumOptions): Promise<void>;

  /** into += scale · Σ x, or x ← it, encoded once with units that the ranks agree on first, and added exactly. */
  sumOfFields(x: Floats, options: SumOfFieldsOptions): Promise<void>;

  /** into += scale · Σ q, or x ← it, the levels of l1 or linf, or signs with exact zeros, as whole numbers, exactly. */
  sumOfLevels(x: Floats, options: SumByOwnersOptions): Promise<void>;

  /** `sumOfLevels` by one summing all-reduce of fields that are wide enough for the sum. */
  sumOfLevelsDirect(x: Floats, options: SumOfLevelsOptions): Promise<void>;

  /** sign(Σ q): Lion Cub's use of its levels, and the majority of signs with exact zeros. */
  signOfLevels(x: Floats, options: LevelsOptions): Promise<Ternary>;

  /** into += the mean of x, or x ← it, compressed both ways; the errors keep the unsent rest for the next time. */
  meanErrorCompensated(x: Floats, options: ErrorCompensation): Promise<void>;

  /**
   * The message of `meanErrorCompensated`, for vectors that the ranks have encoded themselves. Resolves to the mean's
   * wires, in the order of its elements.
   */
  meanOfWires(options: MeanOfWires): Promise<readonly ChunkWire[]>;

  /** into += the mean of the few elements that each rank sends of its x, or x ← it. */
  sparse(x: Floats, options: SparseOptions): Promise<void>;

  /**
   * The exchanges of a group of ranks that this rank belongs to. All ranks make the same requests, each for its own
   * group.
   */
  among(members: readonly number[]): Among;

  /** Sends only this rank's refusal, if it has one: for a step without any other message. */
  agree(): Promise<void>;
}

/** Options of an `Exchange`. Each has a default. */
export interface ExchangeOptions {
  /** The schemes of votes and means; the standard ones unless given. */
  schemes?: Partial<ChosenSchemes>;
  /**
   * A second group of the same ranks, for results. They come down over it while the next exchange's vectors go up over
   * the first.
   */
  down?: Group;
  /** f32 vectors that are neighbours in this memory are averaged as one. */
  memory?: NativeBuffer;
  /**
   * Whether the caller enters each round into the groups' queues, by `enter`. Otherwise a round enters at its first
   * request.
   */
  entersByCaller?: boolean;
  /** The observer of this exchange: it hears how long the parts of each message take. */
  watch?: Watch | undefined;
}

type AnyKind = Kind<unknown, unknown, unknown, unknown, never>;

/** One request, and its promise. */
interface Request {
  readonly kind: AnyKind;
  readonly part: unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Places {
  readonly up: QueuedGroup;
  readonly down: QueuedGroup;
}

/** Groups on which the time of resumed steps is already being measured, until the next tick. */
const resuming = new WeakSet<Group>();

/** The exchange of one step, or of one bucket of it. */
export class StepExchange {
  readonly #resources: KindResources;
  readonly #down: Group;
  readonly #entersByCaller: boolean;
  readonly #watch: Watch | undefined;
  readonly #places: PromiseWithResolvers<Places>[] = []; // by round
  readonly #entered: Places[] = []; // by round
  readonly #rounds: Promise<void>[] = [];
  #next: Request[] = []; // the requests of the round that has not started
  #scheduled = false; // that round has its first request
  #refusal: RefusalReason | undefined;
  #closed = false;

  constructor(group: Group, { schemes, down = group, memory, entersByCaller = false, watch }: ExchangeOptions) {
    this.#resources = { group, schemes: { ...standardSchemes, ...schemes }, memory };
    this.#down = down;
    this.#entersByCaller = entersByCaller;
    this.#watch = watch;
  }

  /**
   * The operations of an optimizer's step. Each call is a request; `joins` is told the round that it is about to join.
   */
  requests(joins?: (round: number) => void): Exchange {
    const { group } = this.#resources;
    const ask = <X, O extends object, P, R, M>(kind: Kind<X, O, P, R, M>, vector: X, given: O): Promise<R> =>
      retained(kind, vector, given, (x, options) => {
        const part = kind.ask(x, options, this.#resources);
        return new Promise<R>((resolve, reject) => {
          joins?.(this.#rounds.length - (this.#scheduled ? 1 : 0));
          this.#add({ kind: kind as unknown as AnyKind, part, resolve: resolve as Request["resolve"], reject });
        });
      });
    const of =
      <X, O extends object, P, R, M>(kind: Kind<X, O, P, R, M>) =>
      async (x: X, options: O): Promise<R> =>
        ask(kind, x, options);
    return {
      ranks: group.size,
      mean: async (x, options = {}) => ask(mean, x, options),
      computedMean: of(computedMean),
      meanAtOwner: of(meanAtOwner),
      fromOwner: of(fromOwner),
      majority: async (u: PackedBits, { tie }: { tie: Tie }) => (await ask(vote, u, { outcome: tie })) as never,
      tally: async (u) => (await ask(vote, u, { outcome: "tally" })) as Tally,
      sum: of(sum),
      sumOfFields: of(sumOfFields),
      sumOfLevels: of(sumOfLevels),
      sumOfLevelsDirect: of(sumOfLevelsDirect),
      signOfLevels: of(signOfLevels),
      meanErrorCompensated: of(meanErrorCompensated),
      meanOfWires: async (options) => ask(meanOfWires, undefined, options),
      sparse: of(sparse),
      among(members) {
        checkMembers(group, members);
        return {
          mean: (x) => of(meanAmong)(x, { members }),
          reduce: (x, into) => of(reduceAmong)(x, { members, into }),
          gather: (shard, into) => of(gatherAmong)(shard, { members, into }),
        };
      },
      agree: async () => ask(agree, undefined, {}),
    };
  }

  #add(request: Request): void {
    this.#next.push(request);
    if (this.#scheduled) return;
    this.#scheduled = true;
    const round = this.#rounds.length;
    if (!this.#entersByCaller) this.enter();
    // Steps that resume with the last results make all their next requests before the next iteration of the event loop.
    const roundDone = nextIteration().then(() => this.#carry(round));
    roundDone.catch(() => {}); // the round's requests are rejected
    this.#rounds.push(roundDone);
  }

  /** Gives the next round its places in the queues. All ranks call it in the same order for all their exchanges. */
  enter(): void {
    const { group } = this.#resources;
    const up = enterQueue(group, this.#watch);
    const places = { up, down: this.#down === group ? up : enterQueue(this.#down, this.#watch) };
    this.#placesOf(this.#entered.length).resolve(places);
    this.#entered.push(places);
    if (this.#closed) this.close();
  }

  /** Carries all requests of a round, and resolves them. */
  async #carry(round: number): Promise<void> {
    const requests = this.#next;
    this.#next = [];
    this.#scheduled = false;
    const places = await this.#placesOf(round).promise;
    try {
      // The kinds are carried one after the other: their order must not depend on which kind's results arrive first.
      const kinds = [...Map.groupBy(requests, (each) => this.#keyOf(each)).values()];
      for (const [i, sameKind] of kinds.entries()) {
        const [{ kind }] = sameKind as [Request];
        const isLast = i + 1 === kinds.length;
        const callsLater = isLast ? (kind.notesMayFollow ? "down" : "none") : "both";
        const parts = sameKind.map(({ part }) => part);
        await kind.carry(parts, new ExchangeContext(places, this.#refusal, callsLater, this.#watch), this.#resources);
      }
      this.#watchSteps();
      for (const { kind, part, resolve } of requests) resolve(kind.result(part));
    } catch (error) {
      for (const request of requests) request.reject(error);
      this.close(); // every rank has the error, and closes
      throw error;
    } finally {
      places.up.leave();
      places.down.leave();
    }
  }

  /** Requests of a round with the same key are carried together. */
  #keyOf({ kind, part }: Request): string {
    return kind.key?.(part, this.#resources) ?? kind.name;
  }

  /**
   * Measures the optimizer's own work: the steps that get their results now resume before the next tick. Rounds that
   * end in the same tick are measured as one piece of work.
   */
  #watchSteps(): void {
    const watch = this.#watch;
    if (!watch || resuming.has(this.#resources.group)) return;
    resuming.add(this.#resources.group);
    const began = performance.now();
    process.nextTick(() => {
      resuming.delete(this.#resources.group);
      watch.saw("update", began, performance.now());
    });
  }

  #placesOf(round: number): PromiseWithResolvers<Places> {
    this.#places[round] ??= Promise.withResolvers();
    return this.#places[round];
  }

  /**
   * This rank will not take the step. The headers of the messages that it still sends carry the reason, and every rank
   * throws the same StepRefusedError. A mean in f32 carries NaN instead; ranks whose `accept` sees it then throw.
   */
  refuse(reason: RefusalReason): void {
    this.#refusal ??= reason;
  }

  /** Resolves when all rounds have arrived, also those that follow from earlier results; or rejects. */
  async arrived(): Promise<void> {
    for (let round = 0; round < this.#rounds.length; round++) {
      await this.#rounds[round];
      await nextIteration(); // steps that have their results make their next requests
    }
  }

  /** Gives up the places of rounds that will not come. */
  close(): void {
    this.#closed = true;
    for (const { up, down } of this.#entered) {
      up.leave();
      down.leave();
    }
  }
}

/** An exchange that hands out each result when it arrives. */
export function openExchange(group: Group, options: ExchangeOptions = {}): Exchange & Pick<StepExchange, "refuse"> {
  const exchange = new StepExchange(group, options);
  return { ...exchange.requests(), refuse: (reason) => exchange.refuse(reason) };
}
