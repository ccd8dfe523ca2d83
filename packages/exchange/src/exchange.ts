/**
 * What an optimizer's step may ask of the other ranks. Messages asked for in one turn of the event loop leave as one,
 * in the order in which they were asked for, which is segment order on every rank.
 */
import type { Group, Memory, PointerMemory } from "@terse/collectives";
import type { Bits, Tally, Ternary } from "./bits.ts";
import { adjacent, join } from "./join.ts";
import { noteOf, type RefusalReason, throwRefusal } from "./refusal.ts";
import { majority } from "./schemes/majority.ts";
import { majorityOrZero } from "./schemes/majority-or-zero.ts";
import { mean } from "./schemes/mean.ts";
import { tally } from "./schemes/tally.ts";

/** What a vote without a majority becomes. `alternate` is resolved to plus or minus by the step, before it comes here. */
export type Tie = "plus" | "minus" | "zero";

export interface Exchange {
  readonly ranks: number;

  /** x ← mean over ranks. */
  mean(x: Memory): Promise<void>;

  /** The sign most ranks gave; takes over u's memory. */
  majority(u: Bits, options: { tie: "plus" | "minus" }): Promise<Bits>;
  majority(u: Bits, options: { tie: Tie }): Promise<Bits | Ternary>;

  /** How many ranks gave a plus; takes over u's memory. */
  tally(u: Bits): Promise<Tally>;
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

  /** Of an exchange that withholds: hands out what has arrived. */
  release(): void;
}

type Request =
  | { kind: "mean"; x: Memory; done(): void; failed(error: unknown): void }
  | { kind: "vote"; scheme: string; u: Bits; done(result: Bits | Ternary | Tally): void; failed(error: unknown): void };

export interface ExchangeOptions {
  /** Whether these means, the same on every rank, may be used; asked before anything of the turn is handed out. */
  accepts?: (means: readonly Memory[]) => boolean;
  /** Vectors of f32 that lie side by side in this memory leave as one. */
  region?: PointerMemory;
  /** What votes decided goes over this group, beside the next votes; the same ranks as the first group. */
  gather?: Group;
  /** Nothing is handed out before `release`: for parameters that must not change yet. */
  withheld?: boolean;
}

export function openExchange(
  group: Group,
  { accepts = () => true, region, gather = group, withheld = false }: ExchangeOptions = {},
): StepExchange {
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
    try {
      // One scheme after the other: ranks must not depend on whose answer comes first.
      for (const requests of byScheme(turn)) outcomes.push(...(await carry(requests)));
      if (withheld) held.push(...outcomes);
      else for (const outcome of outcomes) outcome();
    } catch (error) {
      for (const request of turn) request.failed(error);
      throw error;
    } finally {
      scheduled = false;
      if (waiting.length > 0) schedule();
    }
  }

  async function carry(requests: readonly Request[]): Promise<(() => void)[]> {
    const [first] = requests;
    if (first!.kind === "mean") {
      const means = requests.filter((request) => request.kind === "mean");
      const vectors = means.map((request) => request.x);
      await Promise.all(adjacent(vectors, region).map((x) => mean(group, x)));
      if (!accepts(vectors)) await throwRefusal(gather, note);
      return means.map((request) => request.done);
    }
    const votes = requests.filter((request) => request.kind === "vote");
    const bad = votes.find((request) => request.u.firstNonFinite !== undefined);
    if (bad) note ||= noteOf("the gradient is not finite");
    const joined = join(votes.map((request) => request.u));
    const result = await schemes[first!.scheme]!(joined.bits);
    const pieces = joined.split(result);
    return votes.map((request, i) => () => request.done(pieces[i]!));
  }

  const schemes: Record<string, (u: Bits) => Promise<Bits | Ternary | Tally>> = {
    plus: (u) => majority(group, u, "plus", note, gather),
    minus: (u) => majority(group, u, "minus", note, gather),
    zero: (u) => majorityOrZero(group, u, note, gather),
    tally: (u) => tally(group, u, note, gather),
  };

  const vote = <Result>(scheme: string, u: Bits): Promise<Result> =>
    new Promise((done, failed) => ask({ kind: "vote", scheme, u, done: (result) => done(result as Result), failed }));

  return {
    ranks: group.size,
    refuse: (reason) => {
      note ||= noteOf(reason);
    },
    async arrived() {
      for (let i = 0; i < turns.length; i++) await turns[i];
    },
    release() {
      for (const outcome of held.splice(0)) outcome();
    },
    mean: (x) => new Promise((done, failed) => ask({ kind: "mean", x, done, failed })),
    majority: (u: Bits, { tie }: { tie: Tie }): Promise<never> => vote(tie, u),
    tally: (u) => vote("tally", u),
  };
}

/** Requests of the same kind, in the order in which the kinds were first asked for. */
function byScheme(requests: readonly Request[]): Request[][] {
  const groups = new Map<string, Request[]>();
  for (const request of requests) {
    const key = request.kind === "mean" ? "mean" : request.scheme;
    const group = groups.get(key);
    if (group) group.push(request);
    else groups.set(key, [request]);
  }
  return [...groups.values()];
}
