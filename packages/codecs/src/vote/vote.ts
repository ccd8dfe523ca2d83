/**
 * vote: P ranks' packed signs → one sign, or a count, per element. A null is the vote of an absent rank: P counts the
 * present ones.
 *
 *   c[i]      = number of ranks whose bit i is 1                      0 ≤ c[i] ≤ P
 *   majority  = 2 c > P, or 2 c = P and ties count as plus
 *   tally     = bit k of c[i] is bit i of planes[k]
 *
 * Pad bits of the votes are ignored; those of the results are 0.
 * This file is the definition: vote.c, vote_avx2.c, … write the same bytes.
 */
import type { Vote, VoteKernel } from "@terse/native-codecs";
import { bitAt } from "../shared/fields/fields.ts";

export const vote: VoteKernel = {
  name: "vote",
  implementation: "typescript",

  majority(out, votes, n, { tie }) {
    const balance = balances(votes, n); // before `out` is written: it may be one of the votes
    pack(out, n, (i) => balance[i]! > 0 || (balance[i] === 0 && tie === "plus"));
  },

  majorityOrZero(plus, nonzero, votes, n) {
    const balance = balances(votes, n);
    pack(plus, n, (i) => balance[i]! > 0);
    pack(nonzero, n, (i) => balance[i] !== 0);
  },

  tally(planes, votes, n) {
    const balance = balances(votes, n);
    const present = votes.filter((wire) => wire !== null).length;
    planes.forEach((plane, k) => {
      pack(plane, n, (i) => (((balance[i]! + present) / 2) >> k) % 2 === 1);
    });
  },
};

/** Plus votes less minus votes, per element: 2 c − P. */
function balances(votes: readonly Vote[], n: number): Int32Array {
  const balance = new Int32Array(n);
  for (const wire of votes) {
    if (wire === null) continue;
    for (let i = 0; i < n; i++) balance[i]! += bitAt(wire, i) ? 1 : -1;
  }
  return balance;
}

function pack(out: Uint8Array, n: number, plus: (i: number) => boolean): void {
  out.fill(0);
  for (let i = 0; i < n; i++) if (plus(i)) out[i >> 3]! |= 1 << (i & 7);
}
