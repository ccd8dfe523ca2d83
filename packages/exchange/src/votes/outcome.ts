/**
 * The outcome of a vote: for each element a function of c, the number of plus votes of P ranks, in one or more bits.
 *
 *   plus, minus   1 bit    the majority; a tie is that sign
 *   zero          2 bits   c > P/2, and c ≠ P/2; 1 bit if P is odd, because then there are no ties
 *   tally         K bits   c itself, K = ⌈log2(P + 1)⌉
 */
import { majority, majorityOrZero, tally, tallyPlanes } from "@terse/codecs";
import { type PackedBits, Tally, Ternary } from "../packed-bits.ts";

export type Outcome = "plus" | "minus" | "zero" | "tally";

export type Result = PackedBits | Ternary | Tally;

/** The number of bits per element of an outcome: its planes. */
export function planesOf(outcome: Outcome, ranks: number): number {
  if (outcome === "tally") return tallyPlanes(ranks);
  return outcome === "zero" && ranks % 2 === 0 ? 2 : 1;
}

/** Counts packed votes of n elements and writes the outcome to planes. A single plane may be one of the votes. */
export function decide(outcome: Outcome, planes: readonly Uint8Array[], votes: readonly Uint8Array[], n: number): void {
  if (outcome === "tally") tally(planes, votes, n);
  else if (planes.length === 2) majorityOrZero(planes[0]!, planes[1]!, votes, n);
  else majority(planes[0]!, votes, n, { tie: outcome === "minus" ? "minus" : "plus" });
}

/** An outcome as functions of the count: for each plane, its bit for an element with c plus votes. */
export function planesOfCount(outcome: Outcome, ranks: number): ((c: number) => boolean)[] {
  if (outcome === "tally") return Array.from({ length: tallyPlanes(ranks) }, (_, k) => (c) => ((c >> k) & 1) === 1);
  const most = outcome === "plus" ? (c: number) => 2 * c >= ranks : (c: number) => 2 * c > ranks;
  return planesOf(outcome, ranks) === 2 ? [most, (c) => 2 * c !== ranks] : [most];
}

export function resultOf(outcome: Outcome, planes: readonly PackedBits[], ranks: number): Result {
  if (outcome === "tally") return new Tally(planes, ranks);
  return planes.length === 2 ? new Ternary(planes[0]!, planes[1]!) : planes[0]!;
}
