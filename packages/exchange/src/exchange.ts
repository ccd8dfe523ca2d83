/**
 * The exchange of a step: an optimizer's requests to the other ranks, and the messages that carry them. Requests that are made in one
 * iteration of the event loop form a round. Those of one kind travel together as one message, in the order in which they were made: the
 * order of the segments, the same on every rank.
 *
 * How to read on. `requests` makes a request of each call, `#add` puts it into a round, `#carry` runs the scheme of each kind. A scheme
 * has these phases:
 *
 *   lay out      several vectors become one, and each rank's part of it is known
 *   encode       the codec writes the bytes
 *   carry        the group's collectives, in the order of its queue (collective-queue.ts)
 *   reduce       votes are counted, wires are added
 *   hand out     every request gets its result, and its promise resolves
 */
import type { Floats } from "@terse/codecs";
import type { BufferLike, Group, NativeBuffer } from "@terse/collectives";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";
import { ExchangeContext } from "./exchange-context.ts";
import { adjacent } from "./means/adjacent.ts";
import { retainingOnHost } from "./on-host.ts";
import type { PackedBits, Tally, Ternary } from "./packed-bits.ts";
import { type RefusalReason, throwRefusal } from "./refusal.ts";
import { retaining } from "./retaining.ts";
import { type ChosenSchemes, standardSchemes } from "./schemes.ts";
import { type Among, checkMembers, gatherAmong, meanAmong, reduceAmong } from "./sums/among.ts";
import { byOwners, type OneWay, type OwnerScheme } from "./sums/by-owners.ts";
import type { OwnedVector } from "./sums/by-slices.ts";
import {
  type ComputedMeanOptions,
  carryOwned,
  computedVector,
  type FromOwnerOptions,
  type MeanAtOwnerOptions,
  vectorFromOwner,
  vectorToOwner,
} from "./sums/computed-mean.ts";
import { carryFields, checkFields, type FieldsRequest, type SumOfFieldsOptions } from "./sums/fields.ts";
import {
  carryDirect,
  checkDirect,
  type DirectRequest,
  type LevelsOptions,
  type SumOfLevelsOptions,
  signOfLevelsScheme,
  sumOfLevelsScheme,
} from "./sums/levels.ts";
import {
  type ChunkWire,
  type ErrorCompensation,
  errorCompensatedScheme,
  type MeanOfWires,
  meanOfWiresScheme,
} from "./sums/mean-error-compensated.ts";
import { carrySparse, checkSparse, type SparseOptions, type SparseRequest } from "./sums/sparse.ts";
import { type SumOptions, sumScheme } from "./sums/sum.ts";
import type { Outcome, Result } from "./votes/outcome.ts";
import { carryVotes, type VoteRequest } from "./votes/vote.ts";
import type { Watch } from "./watch.ts";

/** The result of a vote without a majority. An algorithm resolves its own `alternate` to plus or minus, by the step, before it requests a vote. */
export type Tie = "plus" | "minus" | "zero";

export interface MeanOptions {
  /** Whether the mean, the same on every rank, may be used. If not, all ranks throw a StepRefusedError and no result is handed out. */
  readonly accept?: (() => boolean) | undefined;
}

/**
 * All results are the same bits on every rank. Vectors, errors and `into` belong to the exchange until the promise settles. A tensor among
 * them may be disposed meanwhile: the exchange keeps its memory. A NaN in a vector makes every rank throw a StepRefusedError; errors and
 * `into` may have changed then.
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

  /** into += scale · Σ x, encoded once with units that the ranks agree on first, and added exactly. */
  sumOfFields(x: Floats, options: SumOfFieldsOptions): Promise<void>;

  /** into += scale · Σ q, the levels of l1 or linf, or signs with exact zeros, as whole numbers, exactly. */
  sumOfLevels(x: Floats, options: SumOfLevelsOptions): Promise<void>;

  /** The same by one summing all-reduce of fields that are wide enough for the sum. */
  sumOfLevelsDirect(x: Floats, options: SumOfLevelsOptions): Promise<void>;

  /** sign(Σ q): Lion Cub's use of its levels, and the majority of signs with exact zeros. */
  signOfLevels(x: Floats, options: LevelsOptions): Promise<Ternary>;

  /** into += the mean of x, compressed both ways; the errors keep the unsent rest for the next time. */
  meanErrorCompensated(x: Floats, options: ErrorCompensation): Promise<void>;

  /** The same message of vectors that the ranks have encoded themselves. Resolves to the mean's wires, in the order of its elements. */
  meanOfWires(options: MeanOfWires): Promise<readonly ChunkWire[]>;

  /** into += the mean of the few elements that each rank sends of its x. */
  sparse(x: Floats, options: SparseOptions): Promise<void>;

  /** The exchanges of a group of ranks that this rank belongs to. All ranks make the same requests, each for its own group. */
  among(members: readonly number[]): Among;

  /** Sends only this rank's refusal, if it has one: for a step without any other message. */
  agree(): Promise<void>;
}

export interface ExchangeOptions {
  /** The schemes of votes and means; the standard ones unless given. */
  schemes?: Partial<ChosenSchemes>;
  /** A second group of the same ranks, for results. They come down over it while the next exchange's vectors go up over the first. */
  down?: Group;
  /** f32 vectors that are neighbours in this memory are averaged as one. */
  memory?: NativeBuffer;
  /** The caller enters each round into the groups' queues, by `enter`. Otherwise a round enters at its first request. */
  entersByCaller?: boolean;
  /** Is told how long the parts of each message take. */
  watch?: Watch | undefined;
}

/** One request: the function that carries it, and its promise. */
interface Request<Part = unknown> {
  /** Requests of a round with the same key are carried together. */
  readonly key: string;
  /** This request's vector and options, as `carry` takes them. */
  readonly part: Part;
  carry(parts: readonly Part[], context: ExchangeContext): Promise<void>;
  /** After a mean has arrived, the ranks may send their notes over `down`, to find the rank that refused. */
  readonly notesMayFollow: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

interface MeanPart extends MeanOptions {
  readonly x: BufferLike;
}

interface Places {
  readonly up: QueuedGroup;
  readonly down: QueuedGroup;
}

/** Groups whose optimizer's steps go on with results, while a watch looks on. */
const goingOn = new WeakSet<Group>();

/** The exchange of one step, or of one bucket of it. */
export class StepExchange {
  readonly #group: Group;
  readonly #down: Group;
  readonly #schemes: ChosenSchemes;
  readonly #memory: NativeBuffer | undefined;
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
    this.#group = group;
    this.#down = down;
    this.#schemes = { ...standardSchemes, ...schemes };
    this.#memory = memory;
    this.#entersByCaller = entersByCaller;
    this.#watch = watch;
  }

  /** The operations of an optimizer's step. Each call is a request; `joins` is told the round that it is about to join. */
  requests(joins?: (round: number) => void): Exchange {
    const group = this.#group;
    const request = <Part, R>(
      {
        key,
        part,
        carry,
        notesMayFollow = false,
      }: Pick<Request<Part>, "key" | "part" | "carry"> & { notesMayFollow?: boolean },
      result: () => R,
    ): Promise<R> =>
      new Promise((resolve, reject) => {
        joins?.(this.#rounds.length - (this.#scheduled ? 1 : 0));
        const added: Request<Part> = { key, part, carry, notesMayFollow, resolve: () => resolve(result()), reject };
        this.#add(added as Request);
      });
    const nothing = () => {};
    const viaOwners = <R>(part: OwnerScheme, result: () => R) =>
      request({ key: "owners", part, carry: byOwners }, result);
    const owned = (part: OwnedVector, only?: OneWay) =>
      request({ key: `owned ${only}`, part, carry: (parts, context) => carryOwned(parts, context, only) }, nothing);
    const vote = (outcome: Outcome, u: PackedBits): Promise<never> => {
      const { votes } = this.#schemes;
      const part: VoteRequest = { u };
      // A dense vote has one sign of zero for all its elements.
      const key = votes.dense ? `vote ${outcome} ${u.zero}` : `vote ${outcome}`;
      return request(
        { key, part, carry: (parts, context) => carryVotes(parts, votes, outcome, context) },
        () => part.result as Result as never,
      );
    };
    return {
      ranks: group.size,
      majority: (u: PackedBits, { tie }: { tie: Tie }) => vote(tie, u),
      tally: (u) => vote("tally", u),
      mean: (vector, given = {}) =>
        retaining(vector, given, (x, { accept }) =>
          request(
            {
              key: "mean",
              part: { x, accept } as MeanPart,
              carry: (parts, context) => this.#carryMeans(parts, context),
              notesMayFollow: true,
            },
            nothing,
          ),
        ),
      computedMean: (vector, given) =>
        retaining(vector, given, async (x, options) => owned(computedVector(group, x, options))),
      meanAtOwner: (vector, given) =>
        retaining(vector, given, async (x, options) => owned(vectorToOwner(group, x, options), "up")),
      fromOwner: (vector, given) =>
        retaining(vector, given, async (x, options) => owned(vectorFromOwner(group, x, options), "down")),
      meanErrorCompensated: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) =>
          viaOwners(errorCompensatedScheme(group, x, options), nothing),
        ),
      meanOfWires: async (options) => {
        const wires: ChunkWire[] = [];
        return await viaOwners(meanOfWiresScheme(group, options, wires), () => wires);
      },
      sum: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => viaOwners(sumScheme(group, x, options), nothing)),
      sumOfFields: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => {
          const part: FieldsRequest = { x, options };
          checkFields("sumOfFields", group, part);
          await request({ key: "fields", part, carry: carryFields }, nothing);
        }),
      sumOfLevels: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => viaOwners(sumOfLevelsScheme(group, x, options), nothing)),
      sumOfLevelsDirect: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => {
          checkDirect(group, x, options);
          const part: DirectRequest = { x, options };
          await request({ key: "levels, direct", part, carry: carryDirect }, nothing);
        }),
      signOfLevels: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => {
          const { scheme, result } = signOfLevelsScheme(group, x, options);
          return viaOwners(scheme, result);
        }),
      sparse: (vector, given) =>
        retainingOnHost(vector, given, async (x, options) => {
          const part: SparseRequest = { x, options };
          checkSparse(x, options);
          await request({ key: "sparse", part, carry: carrySparse }, nothing);
        }),
      among: (members) => {
        checkMembers(group, members);
        // Requests along another axis, whose members are other ranks, travel in a message of their own.
        const carried = (what: keyof Among, part: OwnerScheme) =>
          request({ key: `${what} among ${members.join()}`, part, carry: byOwners }, nothing);
        return {
          mean: (vector) => retaining(vector, {}, async (x) => carried("mean", meanAmong(group, x, members))),
          reduce: (vector, given) =>
            retaining(vector, { given }, async (x, { given: into }) =>
              carried("reduce", reduceAmong(group, x, into, members)),
            ),
          gather: (vector, given) =>
            retaining(vector, { given }, async (x, { given: into }) =>
              carried("gather", gatherAmong(group, x, into, members)),
            ),
        };
      },
      agree: () => viaOwners(emptyScheme(group.size), nothing),
    };
  }

  #add(request: Request): void {
    this.#next.push(request);
    if (this.#scheduled) return;
    this.#scheduled = true;
    const round = this.#rounds.length;
    if (!this.#entersByCaller) this.enter();
    // Steps that resume with the last results make all their next requests before the next iteration of the event loop.
    const carried = nextIteration().then(() => this.#carry(round));
    carried.catch(() => {}); // the round's requests are rejected
    this.#rounds.push(carried);
  }

  /** Gives the next round its places in the queues. All ranks call it in the same order for all their exchanges. */
  enter(): void {
    const up = enterQueue(this.#group, this.#watch);
    const places = { up, down: this.#down === this.#group ? up : enterQueue(this.#down, this.#watch) };
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
      const kinds = [...Map.groupBy(requests, ({ key }) => key).values()];
      for (const [i, together] of kinds.entries()) {
        const [{ carry, notesMayFollow }] = together as [Request];
        const isLast = i + 1 === kinds.length;
        const callsLater = isLast ? (notesMayFollow ? "down" : "none") : "both";
        await carry(
          together.map(({ part }) => part),
          new ExchangeContext(places, this.#refusal, callsLater, this.#watch),
        );
      }
      this.#watchSteps();
      for (const request of requests) request.resolve();
    } catch (error) {
      for (const request of requests) request.reject(error);
      this.close(); // every rank has the error, and closes
      throw error;
    } finally {
      places.up.leave();
      places.down.leave();
    }
  }

  /** The steps that get results now go on before the next tick; those of rounds that end together are one piece of work. */
  #watchSteps(): void {
    const watch = this.#watch;
    if (!watch || goingOn.has(this.#group)) return;
    goingOn.add(this.#group);
    const began = performance.now();
    process.nextTick(() => {
      goingOn.delete(this.#group);
      watch.saw("update", began, performance.now());
    });
  }

  async #carryMeans(parts: readonly MeanPart[], context: ExchangeContext): Promise<void> {
    const vectors = parts.map(({ x }) => x);
    await this.#schemes.means.carry(adjacent(vectors, this.#memory), context);
    const accepted = parts.map(({ accept }) => accept?.() ?? true);
    if (accepted.includes(false)) await throwRefusal(context.down, context.note);
  }

  #placesOf(round: number): PromiseWithResolvers<Places> {
    this.#places[round] ??= Promise.withResolvers();
    return this.#places[round];
  }

  /**
   * This rank will not take the step. The headers of the messages that it still sends carry the reason, or a mean carries NaN, and every
   * rank throws the same StepRefusedError.
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

/** A vector without elements: its messages are bare headers. */
function emptyScheme(ranks: number): OwnerScheme {
  const sizes = new Array<number>(ranks).fill(0);
  return { up: sizes, down: sizes, encode() {}, reduce() {}, handOut() {} };
}

const nextIteration = (): Promise<void> => new Promise((done) => setImmediate(done));
