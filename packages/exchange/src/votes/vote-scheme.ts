/**
 * The contract of vote schemes. A scheme decides which ranks count which votes, and how the outcome reaches all ranks,
 * with the same bits on each.
 */
import type { Group } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { bytesOf, type PackedBits } from "../packed-bits.ts";
import { noteOf } from "../refusal.ts";
import { type Outcome, planesOf } from "./outcome.ts";

/** A way to count votes over ranks: how it sends them, what that costs, and which outcomes it has. */
export interface VoteScheme {
  readonly name: string;
  /** The outcomes that it supports. */
  readonly outcomes: readonly Outcome[];
  /** Whether it reads the values of the votes (`PackedBits.values`) instead of their signs. */
  readonly dense: boolean;
  /**
   * Only on more than one rank. Takes this rank's votes in planes[0], and leaves the outcome in all planes, the same
   * bits on every rank.
   */
  carry(planes: readonly PackedBits[], outcome: Outcome, context: ExchangeContext): Promise<void>;
  /** The cost on one rank. RangeError if this number of ranks cannot use the scheme, with the reason. */
  cost(n: number, ranks: number, rank: number, outcome?: Outcome): Cost;
  /** The groups that it has split off this group. They have their own counters. */
  opened(group: Group): Promise<readonly Group[]>;
  /** Closes those groups; the given group stays open. All ranks call it. */
  close(group: Group): Promise<void>;
}

/** The definition of one scheme; `voteScheme` adds the parts that all schemes share. */
export interface VoteSchemeDefinition extends Pick<VoteScheme, "name" | "carry"> {
  /** The outcomes that it supports; all of them unless given. */
  readonly outcomes?: readonly Outcome[];
  readonly dense?: boolean;
  /** The cost on more than one rank; its memory leaves out the outcome's planes above the first. */
  cost(n: number, ranks: number, rank: number, outcome: Outcome): Cost;
  /** The groups that the scheme has split off each group. */
  readonly splits?: WeakMap<Group, Promise<readonly Group[]>>;
}

const allOutcomes: readonly Outcome[] = ["plus", "minus", "zero", "tally"];

export function voteScheme({
  name,
  outcomes = allOutcomes,
  dense = false,
  carry,
  cost,
  splits = new WeakMap(),
}: VoteSchemeDefinition): VoteScheme {
  const opened = async (group: Group) => (await splits.get(group)?.catch(() => undefined)) ?? [];
  return {
    name,
    outcomes,
    dense,
    carry,

    cost(n, ranks, rank, outcome = "plus") {
      checkOutcome({ name, outcomes }, outcome);
      if (ranks === 1) return { bytes: 0, messages: 0, peakBytes: 0 };
      const { bytes, messages, peakBytes } = cost(n, ranks, rank, outcome);
      return { bytes, messages, peakBytes: peakBytes + (planesOf(outcome, ranks) - 1) * bytesOf(n) };
    },

    opened,

    async close(group) {
      const groups = await opened(group);
      splits.delete(group);
      for (const inner of groups) await inner.close();
    },
  };
}

export function checkOutcome({ name, outcomes }: Pick<VoteScheme, "name" | "outcomes">, outcome: Outcome): void {
  if (!outcomes.includes(outcome))
    throw new UnsupportedOutcomeError(
      `${name}: this vote scheme does not support ${outcome === "tally" ? "a tally of the votes" : `a tie of ${outcome}`}; it supports a tie of ${outcomes.join(" or ")}. Choose another scheme (exchange.vote in a recipe), or such a tie.`,
    );
}

/**
 * This rank's refusal as the note of a header. Encoding, which goes piece by piece, may find the first reason for it.
 */
export function noteOfVotes(u: PackedBits, { note }: ExchangeContext): number {
  return note || (u.firstNonFinite === undefined ? 0 : noteOf("the gradient is not finite"));
}

/** A vote scheme cannot say what is asked for: another scheme or another tie is needed. */
export class UnsupportedOutcomeError extends RangeError {
  override name = "RangeError";
}
