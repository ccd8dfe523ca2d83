/** A way to count votes: who gets whose signs, who counts, and how the outcome reaches everybody. All give the same bits. */
import type { Group } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import { bytesOf, PackedBits } from "../packed-bits.ts";
import { checkNotes, noteOf } from "../refusal.ts";
import { type Scratch, scratchOf } from "../scratch.ts";
import { type Outcome, planesOf, type Result, resultOf } from "./outcome.ts";

export interface VoteOptions {
  readonly outcome: Outcome;
  /** This rank's refusal, 0 if it has none; it reaches every rank, and all throw the same StepRefusedError. */
  readonly note?: number;
  /** The group that the outcome goes over, so that the next vote's signs need not wait for it; the same ranks. */
  readonly gather?: Group;
  /** Called when nothing more will be asked of the first group. */
  readonly sent?: () => void;
  /**
   * Called for elements from … to − 1 of the result when they have come, in order and in whole words, so that they can be used while the
   * others are on their way; by the end, for all. What comes later may still be refused: the vote then rejects.
   */
  readonly arrived?: (result: Result, from: number, to: number) => void;
}

export interface VoteScheme {
  readonly name: string;
  /** What it can decide. */
  readonly outcomes: readonly Outcome[];
  /** It asks votes for what they are the signs of; nobody else has them filled. */
  readonly dense?: boolean;
  /** The outcome of all ranks' u, the same bits on every rank; takes over u's memory. All ranks call it with the same length. */
  vote(group: Group, u: PackedBits, options: VoteOptions): Promise<Result>;
  /** Throws a RangeError that says why so many ranks cannot vote in this way. */
  cost(n: number, ranks: number, rank: number, outcome?: Outcome): Cost;
  /** The groups that it has opened beside this one, which count what they send for themselves. */
  opened(group: Group): Promise<readonly Group[]>;
  /** Closes those; the group itself stays open. All ranks call it. */
  close(group: Group): Promise<void>;
}

/** What one scheme adds to what all share: for more than one rank, from the votes in planes[0] to the outcome in all planes. */
export interface Carrier {
  readonly name: string;
  readonly outcomes?: readonly Outcome[];
  readonly dense?: boolean;
  carry(group: Group, planes: readonly PackedBits[], context: CarryContext): Promise<void>;
  /** For more than one rank; memory without the outcome's further planes. */
  cost(n: number, ranks: number, rank: number, outcome: Outcome): Cost;
  /** Groups that were opened beside a group. */
  readonly beside?: WeakMap<Group, Promise<readonly Group[]>>;
}

export interface CarryContext {
  readonly outcome: Outcome;
  readonly gather: Group;
  readonly scratch: Scratch;
  readonly sent: () => void;
  /** The first `end` elements of the outcome have come. */
  readonly arrived: (end: number) => void;
  /** This rank's note, as far as it is known by now: u may be encoded in pieces. */
  readonly note: () => number;
}

const everything: readonly Outcome[] = ["plus", "minus", "zero", "tally"];

export function voteScheme({
  name,
  outcomes = everything,
  dense = false,
  carry,
  cost,
  beside = new WeakMap(),
}: Carrier): VoteScheme {
  const opened = async (group: Group) => (await beside.get(group)?.catch(() => undefined)) ?? [];
  const check = (outcome: Outcome) => {
    if (!outcomes.includes(outcome))
      throw new RangeError(
        `${name}: it cannot give ${outcome === "tally" ? "a count of the ranks' votes" : `a tie of ${outcome}`}; it gives a tie of ${outcomes.join(" or ")}.`,
      );
  };
  return {
    name,
    outcomes,
    dense,

    async vote(group, u, { outcome, note = 0, gather = group, sent = () => {}, arrived = () => {} }) {
      check(outcome);
      let told = 0;
      const tell = (result: Result, end: number) => {
        const from = told;
        told = Math.max(from, end);
        if (end > from) arrived(result, from, end);
      };
      const noted = () => note || (u.firstNonFinite === undefined ? 0 : noteOf("the gradient is not finite"));
      if (group.size === 1) {
        u.fill();
        checkNotes([noted()]);
        const result = resultOf(outcome, [u], 1);
        tell(result, u.length);
        return result;
      }
      const scratch = scratchOf(group);
      const more = Array.from({ length: planesOf(outcome, group.size) - 1 }, () => new PackedBits(u.length, scratch));
      try {
        const planes = [u, ...more];
        const result = resultOf(outcome, planes, group.size);
        await carry(group, planes, {
          outcome,
          gather,
          scratch,
          sent,
          arrived: (end) => tell(result, end),
          note: noted,
        });
        tell(result, u.length);
        return result;
      } catch (error) {
        for (const plane of more) plane[Symbol.dispose]();
        throw error;
      } finally {
        sent();
      }
    },

    cost(n, ranks, rank, outcome = "plus") {
      check(outcome);
      if (ranks === 1) return { bytes: 0, messages: 0, peakBytes: 0 };
      const { bytes, messages, peakBytes } = cost(n, ranks, rank, outcome);
      return { bytes, messages, peakBytes: peakBytes + (planesOf(outcome, ranks) - 1) * bytesOf(n) };
    },

    opened,

    async close(group) {
      const groups = await opened(group);
      beside.delete(group);
      for (const inner of groups) await inner.close();
    },
  };
}
