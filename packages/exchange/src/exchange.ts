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

  /** Seconds during which messages of this step were under way. */
  readonly waitedSeconds: number;
}

type Request =
  | { kind: "mean"; x: Memory; done(): void; failed(error: unknown): void }
  | { kind: "vote"; scheme: string; u: Bits; done(result: Bits | Ternary | Tally): void; failed(error: unknown): void };

export interface ExchangeOptions {
  /** Whether these means, the same on every rank, may be used; asked before anything of the turn is handed out. */
  accepts?: (means: readonly Memory[]) => boolean;
  /** Vectors of f32 that lie side by side in this memory leave as one. */
  region?: PointerMemory;
}

export function openExchange(group: Group, { accepts = () => true, region }: ExchangeOptions = {}): StepExchange {
  let note = 0;
  let waiting: Request[] = [];
  let scheduled = false;
  let waitedSeconds = 0;

  function ask(request: Request): void {
    waiting.push(request);
    if (scheduled) return;
    scheduled = true;
    // All steps that were resumed by the last message have asked for their next one before the loop gets here.
    setImmediate(leave);
  }

  async function leave(): Promise<void> {
    const turn = waiting;
    waiting = [];
    const outcomes: (() => void)[] = [];
    const began = performance.now();
    try {
      // One scheme after the other: ranks must not depend on whose answer comes first.
      for (const requests of byScheme(turn)) outcomes.push(...(await carry(requests)));
      waitedSeconds += (performance.now() - began) / 1000;
      for (const outcome of outcomes) outcome();
    } catch (error) {
      for (const request of turn) request.failed(error);
    }
    scheduled = false;
    if (waiting.length > 0) {
      scheduled = true;
      setImmediate(leave);
    }
  }

  async function carry(requests: readonly Request[]): Promise<(() => void)[]> {
    const [first] = requests;
    if (first!.kind === "mean") {
      const means = requests.filter((request) => request.kind === "mean");
      const vectors = means.map((request) => request.x);
      for (const x of adjacent(vectors, region)) await mean(group, x);
      if (!accepts(vectors)) await throwRefusal(group, note);
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
    plus: (u) => majority(group, u, "plus", note),
    minus: (u) => majority(group, u, "minus", note),
    zero: (u) => majorityOrZero(group, u, note),
    tally: (u) => tally(group, u, note),
  };

  const vote = <Result>(scheme: string, u: Bits): Promise<Result> =>
    new Promise((done, failed) => ask({ kind: "vote", scheme, u, done: (result) => done(result as Result), failed }));

  return {
    ranks: group.size,
    get waitedSeconds() {
      return waitedSeconds;
    },
    refuse: (reason) => {
      note ||= noteOf(reason);
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
