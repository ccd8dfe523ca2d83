import { collectives } from "@terse/native-collectives";
import { describe, expect, it } from "vitest";
import {
  allGatherBytes,
  allReduceBytes,
  allToAllBytes,
  barrierBytes,
  broadcastBytes,
  gatherBytes,
  reduceScatterBytes,
  scatterBytes,
  wireSizes,
} from "./bytes.ts";

const ranks = [1, 2, 3, 4, 5, 8, 9, 64];
const over = (n: number, f: (rank: number) => number) =>
  Array.from({ length: n }, (_, rank) => f(rank)).reduce((a, b) => a + b, 0);

it("has the sizes of the native wire", () => {
  expect(wireSizes).toEqual(collectives().wireSizes);
});

// The engine contract compares these forms with the engines' counters. Here they are compared with the textbook.
describe("bytes sent", () => {
  it.each(ranks)("by all %i ranks in a ring all-reduce are 2 (n − 1) S", (n) => {
    for (const length of [100_000, 100_001, 7_777_777])
      expect(over(n, (rank) => allReduceBytes(length, 4, n, rank).bytes)).toBe(2 * (n - 1) * 4 * length);
  });

  it("by one rank are 2 (n − 1)/n S where n divides S, 1.75 S for 8 ranks", () => {
    expect(allReduceBytes(1 << 20, 4, 8, 3)).toEqual({ bytes: 1.75 * (4 << 20), messages: 1 });
  });

  it.each(ranks)("by all %i ranks in a reduce-scatter are (n − 1) S, and in an all-gather too", (n) => {
    const parts = Array.from({ length: n }, (_, r) => 1000 * r + 9000);
    const all = parts.reduce((a, b) => a + b, 0);
    expect(over(n, (rank) => reduceScatterBytes(parts, rank).bytes)).toBe((n - 1) * all);
    expect(over(n, (rank) => allGatherBytes(parts, rank).bytes)).toBe((n - 1) * all);
  });

  it("in an all-to-all are all but the own part", () => {
    expect(allToAllBytes([10, 20, 30, 0], 1)).toEqual({ bytes: 40, messages: 3 });
  });

  it.each(ranks)("in a broadcast to %i ranks reach every other rank once", (n) => {
    for (const bytes of [0, 1, 1 << 20, (1 << 20) + 1])
      for (const root of [0, n - 1]) {
        expect(over(n, (rank) => broadcastBytes(bytes, n, rank, root).bytes)).toBe((n - 1) * bytes);
        expect(over(n, (rank) => broadcastBytes(bytes, n, rank, root).messages)).toBe(2 * (n - 1));
      }
  });

  it("leave the root of a small broadcast ⌈log₂ n⌉ times, of a large one once", () => {
    for (const n of ranks) expect(broadcastBytes(100, n, 0, 0).messages).toBe(Math.ceil(Math.log2(n)));
    expect(broadcastBytes(2 << 20, 64, 5, 5).messages).toBe(1);
  });

  it.each(ranks)("in a gather and a scatter among %i ranks are all parts but the root's own", (n) => {
    const parts = Array.from({ length: n }, (_, r) => 1000 * r + 7);
    const all = parts.reduce((a, b) => a + b, 0);
    for (const root of [0, n - 1])
      for (const form of [gatherBytes, scatterBytes]) {
        expect(over(n, (rank) => form(parts, rank, root).bytes)).toBe(all - parts[root]!);
        expect(over(n, (rank) => form(parts, rank, root).messages)).toBe(2 * (n - 1));
      }
    if (n > 1) expect(scatterBytes(parts, 0, 0)).toEqual({ bytes: all - 7, messages: n - 1 });
    if (n > 1) expect(gatherBytes(parts, 1, 0)).toEqual({ bytes: 1007, messages: n === 2 ? 1 : 2 });
  });

  it("are none in a barrier of ⌈log₂ n⌉ headers", () => {
    expect([1, 2, 3, 4, 5].map((n) => barrierBytes(n))).toEqual(
      [0, 1, 2, 2, 3].map((messages) => ({ bytes: 0, messages })),
    );
  });
});
