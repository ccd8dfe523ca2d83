/** A way to count votes: who gets whose signs, who counts, and how the outcome reaches all ranks. All give the same bits. */
import type { Group } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { bytesOf, type PackedBits } from "../packed-bits.ts";
import { noteOf } from "../refusal.ts";
import { type Outcome, planesOf } from "./outcome.ts";

export interface VoteScheme {
  readonly name: string;
  /** The outcomes that it can give. */
  readonly outcomes: readonly Outcome[];
  /** It reads the values that the votes are the signs of, in place of the signs. */
  readonly dense: boolean;
  /** On more than one rank: from this rank's votes in planes[0] to the outcome in all planes, the same bits on every rank. */
  carry(planes: readonly PackedBits[], outcome: Outcome, context: ExchangeContext): Promise<void>;
  /** Throws a RangeError that says why so many ranks cannot vote in this way. */
  cost(n: number, ranks: number, rank: number, outcome?: Outcome): Cost;
  /** The groups that it has opened beside this one; they count what they send for themselves. */
  opened(group: Group): Promise<readonly Group[]>;
  /** Closes those; the group itself stays open. All ranks call it. */
  close(group: Group): Promise<void>;
}

/** What one scheme defines; `voteScheme` adds what all have in common. */
export interface VoteSchemeDefinition extends Pick<VoteScheme, "name" | "carry"> {
  /** All outcomes unless given. */
  readonly outcomes?: readonly Outcome[];
  readonly dense?: boolean;
  /** On more than one rank; memory without the outcome's planes above the first. */
  cost(n: number, ranks: number, rank: number, outcome: Outcome): Cost;
  /** The groups that were opened beside a group. */
  readonly beside?: WeakMap<Group, Promise<readonly Group[]>>;
}

const everything: readonly Outcome[] = ["plus", "minus", "zero", "tally"];

export function voteScheme({
  name,
  outcomes = everything,
  dense = false,
  carry,
  cost,
  beside = new WeakMap(),
}: VoteSchemeDefinition): VoteScheme {
  const opened = async (group: Group) => (await beside.get(group)?.catch(() => undefined)) ?? [];
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
      beside.delete(group);
      for (const inner of groups) await inner.close();
    },
  };
}

export function checkOutcome({ name, outcomes }: Pick<VoteScheme, "name" | "outcomes">, outcome: Outcome): void {
  if (!outcomes.includes(outcome))
    throw new RangeError(
      `${name}: it cannot give ${outcome === "tally" ? "a count of the ranks' votes" : `a tie of ${outcome}`}; it gives a tie of ${outcomes.join(" or ")}.`,
    );
}

/** This rank's refusal as a header carries it. It may become known while the votes are encoded, piece by piece. */
export function noteOfVotes(u: PackedBits, { note }: ExchangeContext): number {
  return note || (u.firstNonFinite === undefined ? 0 : noteOf("the gradient is not finite"));
}
