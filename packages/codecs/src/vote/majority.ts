import type { Sign, Vote, VoteKernel } from "@terse/native-codecs";
import { levels as nativeLevels, votes as nativeVotes } from "@terse/native-codecs";
import { checkBytes } from "../codec.ts";
import { choose, implementations } from "../implementation.ts";
import { isSame, refuseOverlap } from "../shared/overlap.ts";
import { checkWhole } from "../shared/parameters.ts";
import { vote as definition } from "./vote.ts";

/** Most votes that one election takes. */
export const maxVotes = 1024;

/**
 * out = the sign that most votes have, per lane; a tie counts as `tie`. The vote stays packed: nothing is unpacked.
 * A null among the votes is an absent rank: it is not counted, neither for nor against.
 * `out` and every vote hold ceil(n/8) bytes; `out` may be one of the votes, and may not overlap one otherwise. 1 to 1024 votes, not all of them null; another
 * number, or another length, is a RangeError.
 */
export function majority(out: Uint8Array, votes: readonly Vote[], n: number, { tie }: { tie: Sign }): void {
  checkVotes("majority", votes, n);
  checkResults("majority", { out }, votes, n);
  if (tie !== "plus" && tie !== "minus") {
    throw new TypeError(
      `majority: tie is ${String(tie)}, and one bit holds "plus" or "minus"; for "zero" use majorityOrZero, for "alternate" signAt(policy, step).`,
    );
  }
  kernel().majority(out, votes, n, { tie });
}

/**
 * plus = more plus than minus votes; nonzero = not tied. A tied lane has 0 in both. With an odd number present nothing ties.
 * Lengths, absent ranks and errors as in `majority`.
 */
export function majorityOrZero(plus: Uint8Array, nonzero: Uint8Array, votes: readonly Vote[], n: number): void {
  checkVotes("majorityOrZero", votes, n);
  checkResults("majorityOrZero", { plus, nonzero }, votes, n);
  kernel().majorityOrZero(plus, nonzero, votes, n);
}

/**
 * planes[k] = bit k of the number of plus votes, per lane; planes.length = ceil(log2(P + 1)) for P votes, absent ones included
 * (`tallyPlanes`). Lengths, absent ranks and errors as in `majority`.
 */
export function tally(planes: readonly Uint8Array[], votes: readonly Vote[], n: number): void {
  checkVotes("tally", votes, n);
  if (!Array.isArray(planes))
    throw new TypeError("tally: planes must be an array of Uint8Array, one a bit of the count.");
  if (planes.length !== tallyPlanes(votes.length)) {
    throw new RangeError(
      `tally: a count of ${votes.length} votes takes ${tallyPlanes(votes.length)} planes, got ${planes.length}.`,
    );
  }
  checkResults("tally", Object.fromEntries(planes.map((plane, k) => [`planes[${k}]`, plane])), votes, n);
  kernel().tally(planes, votes, n);
}

/** Bits of a count from 0 to P: ceil(log2(P + 1)). */
export function tallyPlanes(ranks: number): number {
  checkWhole("tallyPlanes", "ranks", ranks, 0, 2 ** 32 - 1);
  return 32 - Math.clz32(ranks);
}

let chosen: VoteKernel | undefined;
function kernel(): VoteKernel {
  chosen ??= choose(implementations(definition, nativeVotes), nativeLevels);
  return chosen;
}

/** The implementation that runs: "avx2", "scalar", "typescript", … */
export const voteImplementation = (): string => kernel().implementation;

const bytesFor = (n: number): number => Math.ceil(n / 8);

/** A result may lie where a vote lies, and nowhere across one or across another result. */
function checkResults(
  where: string,
  results: Readonly<Record<string, Uint8Array>>,
  votes: readonly Vote[],
  n: number,
): void {
  const before: Record<string, Uint8Array> = {};
  for (const [what, result] of Object.entries(results)) {
    checkBytes(where, what, result, bytesFor(n), `${n} lanes`);
    refuseOverlap(where, what, result, before);
    votes.forEach((wire, r) => {
      if (wire !== null && !isSame(result, wire)) refuseOverlap(where, what, result, { [`votes[${r}]`]: wire });
    });
    before[what] = result;
  }
}

function checkVotes(where: string, votes: readonly Vote[], n: number): void {
  if (!Number.isSafeInteger(n) || n < 0)
    throw new RangeError(`${where}: n is ${n}, and a number of lanes is whole and 0 or more.`);
  if (!Array.isArray(votes))
    throw new TypeError(`${where}: votes must be an array, of a Uint8Array or null for each rank.`);
  if (votes.length < 1 || votes.length > maxVotes)
    throw new RangeError(`${where}: a vote takes 1 to ${maxVotes} ranks, got ${votes.length}.`);
  // Not by forEach, which would pass over holes.
  for (const [r, wire] of votes.entries())
    if (wire !== null) checkBytes(where, `votes[${r}]`, wire, bytesFor(n), `${n} lanes`);
  if (votes.every((wire) => wire === null))
    throw new RangeError(`${where}: all ${votes.length} ranks are absent, and somebody must vote.`);
}
