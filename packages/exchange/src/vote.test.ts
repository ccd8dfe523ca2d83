import { sign } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import {
  Bits,
  majority,
  majorityBytes,
  majorityOrZero,
  majorityOrZeroBytes,
  Tally,
  Ternary,
  tally,
  tallyBytes,
} from "./index.ts";
import { onRanks } from "./testing.ts";

/** Signs that every rank and the oracle can make for themselves: a hash of (rank, element). */
function signs(rank: number, n: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => {
    let h = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(rank + 1, 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
    return (h ^ (h >>> 12)) & 1 ? 1 : -1;
  });
}

function packed(rank: number, n: number): Bits {
  const u = new Bits(n);
  u.wire.fill(0);
  sign.encode(u.wire.subarray(0, sign.wireBytes(n)), signs(rank, n), { zero: "plus" });
  return u;
}

function unpacked(bits: Bits): number[] {
  return Array.from({ length: bits.length }, (_, i) => ((bits.wire[i >> 3]! >> (i & 7)) & 1 ? 1 : -1));
}

function sums(ranks: number, n: number): number[] {
  const all = Array.from({ length: ranks }, (_, r) => signs(r, n));
  return Array.from({ length: n }, (_, i) => all.reduce((sum, x) => sum + x[i]!, 0));
}

const lengths = [1, 63, 64, 65, 128, 1000, 4099];
const worlds = [1, 2, 3, 4, 5, 8];

describe.each(worlds)("a vote of %i ranks", (ranks) => {
  it.each(lengths)("gives the majority of %i signs, ties as asked, the same on every rank", async (n) => {
    for (const tie of ["plus", "minus"] as const) {
      const expected = sums(ranks, n).map((sum) => Math.sign(sum) || (tie === "plus" ? 1 : -1));
      const got = await onRanks(ranks, async (group) => unpacked(await majority(group, packed(group.rank, n), tie)));
      for (const result of got) expect(result).toEqual(expected);
    }
  });

  it.each(lengths)("gives zero for a tie among %i signs when asked to", async (n) => {
    const expected = sums(ranks, n).map((sum) => Math.sign(sum));
    const got = await onRanks(ranks, async (group) => {
      const v = await majorityOrZero(group, packed(group.rank, n));
      if (v instanceof Bits) return unpacked(v);
      const nonzero = unpacked(v.nonzero);
      return unpacked(v.plus).map((sign, i) => (nonzero[i] === 1 ? sign : 0));
    });
    for (const result of got) expect(result).toEqual(expected);
  });

  it.each(lengths)("counts the plus votes of %i signs", async (n) => {
    const expected = sums(ranks, n).map((sum) => (sum + ranks) / 2);
    const got = await onRanks(ranks, async (group) => {
      const counts = await tally(group, packed(group.rank, n));
      const planes = counts.planes.map(unpacked);
      return Array.from({ length: n }, (_, i) => planes.reduce((c, plane, k) => c + (plane[i] === 1 ? 2 ** k : 0), 0));
    });
    for (const result of got) expect(result).toEqual(expected);
  });

  it("sends exactly the bytes of the closed forms", async () => {
    const schemes = [
      { run: majority.bind(null) as typeof majority, bytes: majorityBytes, tie: "plus" as const },
      {
        run: (g: Parameters<typeof majority>[0], u: Bits) => majorityOrZero(g, u),
        bytes: majorityOrZeroBytes,
        tie: undefined,
      },
      { run: (g: Parameters<typeof majority>[0], u: Bits) => tally(g, u), bytes: tallyBytes, tie: undefined },
    ];
    for (const n of lengths)
      for (const { run, bytes, tie } of schemes) {
        const sent = await onRanks(ranks, async (group) => {
          await run(group, packed(group.rank, n), tie!);
          return { got: group.sent().bytes, closed: bytes(n, ranks, group.rank) };
        });
        for (const { got, closed } of sent) expect(got).toBe(closed);
      }
  });
});

it("sends 1/32 of what a 32-bit mean sends, for a large vector", () => {
  const n = 124_000_000;
  const one = majorityBytes(n, 8, 0);
  expect((2 * 7 * 4 * n) / 8 / one).toBeCloseTo(32, 3);
});

it("keeps results apart by type", async () => {
  const [v] = await onRanks(2, (group) => majorityOrZero(group, packed(group.rank, 10)));
  expect(v).toBeInstanceOf(Ternary);
  const [c] = await onRanks(2, (group) => tally(group, packed(group.rank, 10)));
  expect(c).toBeInstanceOf(Tally);
});
