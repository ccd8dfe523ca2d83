import type { Sign, Vote, VoteKernel } from "@terse/native-codecs";
import { levels as nativeLevels, votes as nativeVotes } from "@terse/native-codecs";
import { checkBytes, checkOptions } from "../arguments.ts";
import { choose, implementations } from "../implementation.ts";
import { isSame, refuseOverlap } from "../shared/overlap.ts";
import { checkWhole } from "../shared/parameters.ts";
import { vote as definition } from "./vote.ts";

/** The most ranks that can vote. */
export const maxVotes = 1024;

/**
 * out = the sign of the majority, per element; a tie counts as `tie`. The signs are counted in their packed form. A
 * null vote is an absent rank, which is not counted. `out` and every vote have ceil(n/8) bytes; `out` may be one of the
 * votes, but may not overlap one partly. RangeError for another length, fewer than 1 or more than 1024 votes, or if all
 * of them are null.
 */
export function majority(out: Uint8Array, votes: readonly Vote[], n: number, options: { tie: Sign }): void {
  checkOptions("majority", options, ["tie"]);
  const { tie } = options;
  checkVotes("majority", votes, n);
  checkResults("majority", { out }, votes, n);
  if (tie !== "plus" && tie !== "minus") {
    throw new TypeError(
      `majority: tie is ${String(tie)}, and must be "plus" or "minus"; for "zero" use majorityOrZero, for "alternate" pass signAt(policy, step).`,
    );
  }
  kernel().majority(out, votes, n, { tie });
}

/**
 * plus = more plus than minus votes; nonzero = not tied. A tied element has 0 in both. An odd number of present ranks
 * has no ties. Lengths, absent ranks and errors as in `majority`.
 */
export function majorityOrZero(plus: Uint8Array, nonzero: Uint8Array, votes: readonly Vote[], n: number): void {
  checkVotes("majorityOrZero", votes, n);
  checkResults("majorityOrZero", { plus, nonzero }, votes, n);
  kernel().majorityOrZero(plus, nonzero, votes, n);
}

/**
 * planes[k] = bit k of the number of plus votes, per element; planes.length = ceil(log2(P + 1)) for P votes, absent
 * ones included (`tallyPlanes`). Lengths, absent ranks and errors as in `majority`.
 */
export function tally(planes: readonly Uint8Array[], votes: readonly Vote[], n: number): void {
  checkVotes("tally", votes, n);
  if (!Array.isArray(planes))
    throw new TypeError("tally: planes must be an array of Uint8Array, one per bit of the count.");
  if (planes.length !== tallyPlanes(votes.length)) {
    throw new RangeError(
      `tally: a count of ${votes.length} votes takes ${tallyPlanes(votes.length)} planes, not ${planes.length}.`,
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

/** A result may be one of the votes, but may not overlap one partly, nor another result. */
function checkResults(
  where: string,
  results: Readonly<Record<string, Uint8Array>>,
  votes: readonly Vote[],
  n: number,
): void {
  const before: Record<string, Uint8Array> = {};
  for (const [what, result] of Object.entries(results)) {
    checkBytes(where, what, result, bytesFor(n), `${n} elements`);
    refuseOverlap(where, what, result, before);
    votes.forEach((wire, r) => {
      if (wire !== null && !isSame(result, wire)) refuseOverlap(where, what, result, { [`votes[${r}]`]: wire });
    });
    before[what] = result;
  }
}

function checkVotes(where: string, votes: readonly Vote[], n: number): void {
  if (!Number.isSafeInteger(n) || n < 0)
    throw new RangeError(`${where}: n is ${n}, and must be a whole number, 0 or more.`);
  if (!Array.isArray(votes))
    throw new TypeError(`${where}: votes must be an array, of a Uint8Array or null for each rank.`);
  if (votes.length < 1 || votes.length > maxVotes)
    throw new RangeError(`${where}: there are ${votes.length} votes, and 1 to ${maxVotes} are possible.`);
  // Not by forEach, which would pass over holes.
  for (const [r, wire] of votes.entries())
    if (wire !== null) checkBytes(where, `votes[${r}]`, wire, bytesFor(n), `${n} elements`);
  if (votes.every((wire) => wire === null))
    throw new RangeError(`${where}: all ${votes.length} ranks are absent, and at least one must vote.`);
}
