/**
 * What an optimizer's step may ask of the other ranks, and how that becomes messages. Requests that are made in one turn of the event
 * loop travel together, one message for each kind, in the order in which they were made, which is segment order on every rank.
 *
 * Each kind of request has a scheme, with these phases:
 *
 *   lay out      which vectors become one, and which bytes go to which rank
 *   encode       the codec writes them
 *   carry        the group's collectives, in the order of its queue (collective-queue.ts)
 *   reduce       votes are counted, wires are added
 *   hand out     every request gets its result, and its promise resolves
 */
import type { Floats } from "@terse/codecs";
import type { BufferLike, Group, NativeBuffer } from "@terse/collectives";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";
import { ExchangeContext } from "./exchange-context.ts";
import { adjacent } from "./means/adjacent.ts";
import type { PackedBits, Tally, Ternary } from "./packed-bits.ts";
import { type RefusalReason, throwRefusal } from "./refusal.ts";
import { type ChosenSchemes, standardSchemes } from "./schemes.ts";
import { byOwners, type OwnerScheme } from "./sums/by-owners.ts";
import { carryFields, checkFields, type FieldsRequest, type SumOfFieldsOptions } from "./sums/fields.ts";
import { type LevelsOptions, type SumOfLevelsOptions, signOfLevelsScheme, sumOfLevelsScheme } from "./sums/levels.ts";
import { type ErrorCompensation, errorCompensatedScheme } from "./sums/mean-error-compensated.ts";
import { carrySparse, checkSparse, type SparseOptions, type SparseRequest } from "./sums/sparse.ts";
import { type SumOptions, sumScheme } from "./sums/sum.ts";
import type { Outcome, Result } from "./votes/outcome.ts";
import { carryVotes, type VoteRequest } from "./votes/vote.ts";

/** What a vote without a majority becomes. An algorithm turns `alternate` into plus or minus, by its step, before it asks. */
export type Tie = "plus" | "minus" | "zero";

export interface MeanOptions {
  /** Whether the mean, the same on every rank, may be used. If it may not, all ranks throw a StepRefusedError and nothing is handed out. */
  readonly accept?: (() => boolean) | undefined;
}

/**
 * All results are the same bits on every rank. Vectors, errors and `into` belong to the exchange until the promise settles. A NaN in a
 * vector is a refusal, which every rank is told; errors and `into` may have changed then.
 */
export interface Exchange {
  readonly ranks: number;

  /** x ← mean over ranks. */
  mean(x: BufferLike, options?: MeanOptions): Promise<void>;

  /** The sign that most ranks gave; takes over u's memory. */
  majority(u: PackedBits, options: { tie: "plus" | "minus" }): Promise<PackedBits>;
  majority(u: PackedBits, options: { tie: Tie }): Promise<PackedBits | Ternary>;

  /** How many ranks gave a plus; takes over u's memory. */
  tally(u: PackedBits): Promise<Tally>;

  /** into += scale · Σ x, through a codec on the way up and on the way down. */
  sum(x: Floats, options: SumOptions): Promise<void>;

  /** into += scale · Σ x, encoded once with units that the ranks agree on first, and added exactly. */
  sumOfFields(x: Floats, options: SumOfFieldsOptions): Promise<void>;

  /** into += scale · Σ q, the levels of l1 or linf as whole numbers, exactly. */
  sumOfLevels(x: Floats, options: SumOfLevelsOptions): Promise<void>;

  /** sign(Σ q): what Lion Cub makes of its levels. */
  signOfLevels(x: Floats, options: LevelsOptions): Promise<Ternary>;

  /** into += the mean of x, compressed both ways; the errors keep what was not sent for the next time. */
  meanErrorCompensated(x: Floats, options: ErrorCompensation): Promise<void>;

  /** into += the mean of the few elements that each rank sends of its x. */
  sparse(x: Floats, options: SparseOptions): Promise<void>;

  /** Sends nothing but this rank's refusal, if it has one: for a step that has no other message. */
  agree(): Promise<void>;
}

export interface ExchangeOptions {
  /** The schemes of votes and means; the standard ones unless given. */
  schemes?: Partial<ChosenSchemes>;
  /** A second group of the same ranks, which results come down over while the next exchange's vectors go up; the first group unless given. */
  down?: Group;
  /** f32 vectors that are neighbours in this memory are averaged as one. */
  region?: NativeBuffer;
  /** Turns wait until `enter` has given them their places in the queues. Without it a turn enters when its requests are made. */
  placed?: boolean;
}

/** One request: how it is carried, and its promise. */
interface Request<Part = unknown> {
  /** Requests of a turn with the same key are carried together. */
  readonly key: string;
  carry(parts: readonly Part[], context: ExchangeContext): Promise<void>;
  readonly part: Part;
  /** After a mean has come, more may be called on the group that results come down over: ranks ask who refused. */
  readonly asksAfterwards: boolean;
  /** The result waits for `release`. */
  readonly held: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** Who makes requests: it learns of each one and of its answer. */
export interface Caller {
  /** Before a request is made. `held`: its result waits for `release`. */
  requested(): { held: boolean };
  /** Before its promise settles. */
  answered(): void;
}

interface MeanPart extends MeanOptions {
  readonly x: BufferLike;
}

interface Places {
  readonly up: QueuedGroup;
  readonly down: QueuedGroup;
}

/** The exchange of one step, or of one bucket of it. */
export class StepExchange {
  readonly #group: Group;
  readonly #down: Group;
  readonly #schemes: ChosenSchemes;
  readonly #region: NativeBuffer | undefined;
  readonly #placed: boolean;
  readonly #places: PromiseWithResolvers<Places>[] = []; // by turn
  readonly #entered: Places[] = [];
  readonly #turns: Promise<void>[] = [];
  #waiting: Request[] = [];
  #held: Request[] = []; // their results have come
  #refusal: RefusalReason | undefined;
  #scheduled = false;
  #closed = false;

  constructor(group: Group, { schemes, down = group, region, placed = false }: ExchangeOptions) {
    this.#group = group;
    this.#down = down;
    this.#schemes = { ...standardSchemes, ...schemes };
    this.#region = region;
    this.#placed = placed;
  }

  /**
   * This rank will not take the step. The headers of the messages that it still sends say so, or NaN in a mean, and every rank's await
   * throws the same StepRefusedError.
   */
  refuse(reason: RefusalReason): void {
    this.#refusal ??= reason;
  }

  /** Gives the next turn its places in the queues. All ranks call it in the same order for all their exchanges. */
  enter(): void {
    const up = enterQueue(this.#group);
    const places = { up, down: this.#down === this.#group ? up : enterQueue(this.#down) };
    this.#placesOf(this.#entered.length).resolve(places);
    this.#entered.push(places);
    if (this.#closed) this.close();
  }

  /** Resolves when all that was requested has come, and what was requested on from there, up to results that are held; or rejects. */
  async arrived(): Promise<void> {
    for (let i = 0; i < this.#turns.length; i++) {
      await this.#turns[i];
      await nextTurn(); // steps that have their results make their next requests
    }
  }

  /** Hands out the results that are held. False when there were none. */
  release(): boolean {
    const held = this.#held;
    this.#held = [];
    for (const request of held) request.resolve();
    return held.length > 0;
  }

  /** Gives up the places of turns that will not come. */
  close(): void {
    this.#closed = true;
    for (const { up, down } of this.#entered) {
      up.leave();
      down.leave();
    }
  }

  /** The exchange as a caller sees it. */
  requests(caller: Caller = anybody): Exchange {
    const group = this.#group;
    const ask = <Part, R>(
      request: Pick<Request<Part>, "key" | "carry" | "part"> & { asksAfterwards?: boolean },
      result: () => R,
    ): Promise<R> =>
      new Promise((resolve, reject) => {
        const { held } = caller.requested();
        const settle = (how: () => void) => {
          caller.answered();
          how();
        };
        const asked = {
          asksAfterwards: false,
          ...request,
          held,
          resolve: () => settle(() => resolve(result())),
          reject: (error: unknown) => settle(() => reject(error)),
        };
        this.#ask(asked as unknown as Request);
      });
    const nothing = () => {};
    const toOwners = <R>(part: OwnerScheme, result: () => R) => ask({ key: "owners", carry: byOwners, part }, result);
    const vote = (outcome: Outcome, u: PackedBits): Promise<never> => {
      const { votes } = this.#schemes;
      const part: VoteRequest = { u };
      // A dense vote knows one sign of zero for all its elements.
      const key = votes.dense ? `vote ${outcome} ${u.zero}` : `vote ${outcome}`;
      return ask(
        { key, part, carry: (parts, context) => carryVotes(parts, votes, outcome, context) },
        () => part.result as Result as never,
      );
    };
    return {
      ranks: group.size,
      mean: (x, options = {}) =>
        ask(
          {
            key: "mean",
            part: { x, ...options } as MeanPart,
            carry: (parts, context) => this.#carryMeans(parts, context),
            asksAfterwards: true,
          },
          nothing,
        ),
      majority: (u: PackedBits, { tie }: { tie: Tie }) => vote(tie, u),
      tally: (u) => vote("tally", u),
      sum: async (x, options) => toOwners(sumScheme(group, x, options), nothing),
      async sumOfFields(x, options) {
        const part: FieldsRequest = { x, options };
        checkFields("sumOfFields", group, part);
        await ask({ key: "fields", carry: carryFields, part }, nothing);
      },
      sumOfLevels: async (x, options) => toOwners(sumOfLevelsScheme(group, x, options), nothing),
      async signOfLevels(x, options) {
        const { scheme, result } = signOfLevelsScheme(group, x, options);
        return toOwners(scheme, result);
      },
      meanErrorCompensated: async (x, options) => toOwners(errorCompensatedScheme(group, x, options), nothing),
      async sparse(x, options) {
        const part: SparseRequest = { x, options };
        checkSparse(x, options);
        await ask({ key: "sparse", carry: carrySparse, part }, nothing);
      },
      agree: () => ask({ key: "owners", carry: byOwners, part: noScheme(group.size) }, nothing),
    };
  }

  #ask(request: Request): void {
    this.#waiting.push(request);
    if (!this.#scheduled) this.#schedule();
  }

  /** The steps that the last results have resumed make all their next requests before the event loop comes to its next turn. */
  #schedule(): void {
    this.#scheduled = true;
    const index = this.#turns.length;
    if (!this.#placed) this.enter();
    const turn = nextTurn().then(() => this.#leave(index));
    turn.catch(() => {}); // its requests are rejected
    this.#turns.push(turn);
  }

  async #leave(index: number): Promise<void> {
    const requests = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    const places = await this.#placesOf(index).promise;
    try {
      // One kind after the other: the order must not depend on which kind's results come first.
      const kinds = [...Map.groupBy(requests, ({ key }) => key).values()];
      for (const [i, together] of kinds.entries()) {
        const [{ carry, asksAfterwards }] = together as [Request];
        const isLast = i + 1 === kinds.length;
        const context = new ExchangeContext(
          places,
          this.#refusal,
          isLast ? (asksAfterwards ? "down" : "nothing") : "both",
        );
        await carry(
          together.map(({ part }) => part),
          context,
        );
      }
      for (const request of requests) {
        if (request.held) this.#held.push(request);
        else request.resolve();
      }
    } catch (error) {
      for (const request of requests) request.reject(error);
      this.close(); // on every rank, as the error is
      throw error;
    } finally {
      places.up.leave();
      places.down.leave();
    }
  }

  async #carryMeans(parts: readonly MeanPart[], context: ExchangeContext): Promise<void> {
    const vectors = parts.map(({ x }) => x);
    await this.#schemes.means.carry(adjacent(vectors, this.#region), context);
    const accepted = parts.map(({ accept }) => accept?.() ?? true);
    if (accepted.includes(false)) await throwRefusal(context.down, context.note);
  }

  #placesOf(turn: number): PromiseWithResolvers<Places> {
    this.#places[turn] ??= Promise.withResolvers();
    return this.#places[turn];
  }
}

/** An exchange whose results are handed out as soon as they come. */
export function openExchange(group: Group, options: ExchangeOptions = {}): Exchange & Pick<StepExchange, "refuse"> {
  const exchange = new StepExchange(group, options);
  return { ...exchange.requests(), refuse: (reason) => exchange.refuse(reason) };
}

const anybody: Caller = { requested: () => ({ held: false }), answered() {} };

/** A vector of no element: its messages are bare headers. */
function noScheme(ranks: number): OwnerScheme {
  const sizes = new Array<number>(ranks).fill(0);
  return { up: sizes, down: sizes, encode() {}, reduce() {}, handOut() {} };
}

const nextTurn = (): Promise<void> => new Promise((done) => setImmediate(done));
