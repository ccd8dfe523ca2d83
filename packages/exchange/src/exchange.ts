/**
 * What an optimizer's step may ask of the other ranks. Messages asked for in one turn of the event loop leave as one,
 * in the order in which they were asked for, which is segment order on every rank.
 */
import type { BufferLike, Group, NativeBuffer } from "@terse/collectives";
import { type ChosenSchemes, standardSchemes } from "./chosen.ts";
import { adjacent, join } from "./join.ts";
import type { PackedBits, Tally, Ternary } from "./packed-bits.ts";
import { noteOf, type RefusalReason, throwRefusal } from "./refusal.ts";
import { carrySums, type SumRequest, type Sums, sumsOf } from "./sums.ts";
import { inTurn, takeTurn } from "./turns.ts";
import type { Outcome, Result } from "./votes/outcome.ts";

/** What a vote without a majority becomes. `alternate` is resolved to plus or minus by the step, before it comes here. */
export type Tie = "plus" | "minus" | "zero";

export interface Exchange extends Sums {
  readonly ranks: number;

  /** x ← mean over ranks. */
  mean(x: BufferLike): Promise<void>;

  /** The sign most ranks gave; takes over u's memory. */
  majority(u: PackedBits, options: { tie: "plus" | "minus" }): Promise<PackedBits>;
  majority(u: PackedBits, options: { tie: Tie }): Promise<PackedBits | Ternary>;

  /** How many ranks gave a plus; takes over u's memory. */
  tally(u: PackedBits): Promise<Tally>;
}

/** The exchange of one step. */
export interface StepExchange extends Exchange {
  /**
   * This rank will not take the step. It says so in the headers of the votes it still sends, and every rank's await throws
   * the same StepRefusedError. A mean carries no notes: who refuses sends NaN in it, which all ranks see (`accepts`).
   */
  refuse(reason: RefusalReason): void;

  /** Resolves when everything that was asked for has come and is good; rejects as the awaits do. */
  arrived(): Promise<void>;

  /** Of an exchange that withholds: hands out what has arrived. False when that was nothing. */
  release(): boolean;
}

type Request =
  | SumRequest
  | { kind: "mean"; x: BufferLike; done(): void; failed(error: unknown): void }
  | { kind: "vote"; outcome: Outcome; u: PackedBits; done(result: Result): void; failed(error: unknown): void };

export interface ExchangeOptions {
  /** Whether these means, the same on every rank, may be used; asked before anything of the turn is handed out. */
  accepts?: (means: readonly BufferLike[]) => boolean;
  /** Vectors of f32 that lie side by side in this memory leave as one. */
  region?: NativeBuffer;
  /** What votes decided goes over this group, beside the next votes; the same ranks as the first group. */
  gather?: Group;
  /** Nothing is handed out before `release`: for parameters that must not change yet. */
  withheld?: boolean;
  /** What carries votes and means; the standard schemes unless given. */
  schemes?: Partial<ChosenSchemes>;
}

export function openExchange(group: Group, options: ExchangeOptions = {}): StepExchange {
  const { accepts = () => true, region, gather = group, withheld = false } = options;
  const { votes, means } = { ...standardSchemes, ...options.schemes };
  let note = 0;
  const turns: Promise<void>[] = [];
  const held: (() => void)[] = []; // come, and not handed out
  let waiting: Request[] = [];
  let scheduled = false;

  function ask(request: Request): void {
    waiting.push(request);
    if (scheduled) return;
    schedule();
  }

  /** All steps that were resumed by the last message have asked for their next one before the loop gets here. */
  function schedule(): void {
    scheduled = true;
    const turn = new Promise<void>((done, failed) => setImmediate(() => leave().then(done, failed)));
    turn.catch(() => {}); // its requests have been told
    turns.push(turn);
  }

  async function leave(): Promise<void> {
    const turn = waiting;
    waiting = [];
    const outcomes: (() => void)[] = [];
    const mine = takeTurn(group);
    const back = gather === group ? group : inTurn(gather, mine.othersOver);
    try {
      // What would only stand in the queue gets its signs ready meanwhile.
      if (!mine.free && !votes.dense) for (const request of turn) if (request.kind === "vote") request.u.fill();
      await mine.begins;
      // One scheme after the other: ranks must not depend on whose answer comes first.
      const kinds = byScheme(turn, votes.dense);
      for (const [i, requests] of kinds.entries()) {
        const sent = i + 1 === kinds.length ? mine.end : () => {};
        outcomes.push(...(await carry(requests, back, sent)));
      }
      if (withheld) held.push(...outcomes);
      else for (const outcome of outcomes) outcome();
    } catch (error) {
      for (const request of turn) request.failed(error);
      throw error;
    } finally {
      mine.over();
      scheduled = false;
      if (waiting.length > 0) schedule();
    }
  }

  async function carry(requests: readonly Request[], gather: Group, sent: () => void): Promise<(() => void)[]> {
    const [first] = requests;
    if (first!.kind === "mean") {
      const asked = requests.filter((request) => request.kind === "mean");
      const vectors = asked.map((request) => request.x);
      const joined = adjacent(vectors, region);
      const moveOn = gather === group ? () => {} : sent; // ranks may ask that group why a mean was not accepted
      const under = means.together
        ? [means.together(group, joined, { note, gather, sent: moveOn })]
        : joined.map((x) => means.mean(group, x, { note, gather }));
      if (!means.together) moveOn();
      await Promise.allSettled(under);
      await Promise.all(under);
      if (!accepts(vectors)) await throwRefusal(gather, note);
      return asked.map((request) => request.done);
    }
    if (first!.kind !== "vote") return carrySums(group, requests as SumRequest[], { note, gather, sent });
    const asked = requests.filter((request) => request.kind === "vote");
    const joined = join(asked.map((request) => request.u));
    const result = await votes.vote(group, joined.bits, { outcome: first!.outcome, note, gather, sent });
    const pieces = joined.split(result);
    return asked.map((request, i) => () => request.done(pieces[i]!));
  }

  const vote = <R extends Result>(outcome: Outcome, u: PackedBits): Promise<R> =>
    new Promise((done, failed) => ask({ kind: "vote", outcome, u, done: (result) => done(result as R), failed }));

  return {
    ranks: group.size,
    refuse: (reason) => {
      note ||= noteOf(reason);
    },
    async arrived() {
      for (let i = 0; i < turns.length; i++) await turns[i];
    },
    release() {
      const outcomes = held.splice(0);
      for (const outcome of outcomes) outcome();
      return outcomes.length > 0;
    },
    mean: (x) => new Promise((done, failed) => ask({ kind: "mean", x, done, failed })),
    majority: (u: PackedBits, { tie }: { tie: Tie }): Promise<never> => vote<never>(tie, u),
    tally: (u) => vote("tally", u),
    ...sumsOf(group, ask),
  };
}

/** Requests of the same kind, in the order in which the kinds were first asked for. Dense votes have one zero, too. */
function byScheme(requests: readonly Request[], dense = false): Request[][] {
  const groups = new Map<string, Request[]>();
  for (const request of requests) {
    const kind = request.kind === "vote" ? request.outcome : request.kind;
    const key = request.kind === "vote" && dense ? `${kind} ${request.u.zero}` : kind;
    const group = groups.get(key);
    if (group) group.push(request);
    else groups.set(key, [request]);
  }
  return [...groups.values()];
}
