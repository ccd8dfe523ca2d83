import { manualSeed, rand, scope } from "@terse/tensor";
import { expect, it } from "vitest";
import { seedOfRank } from "./seed-of-rank.ts";

it("draws other numbers on every rank, with every seed and from every step, and the same ones again", () => {
  const first = (seed: number, rank: number, step: number) =>
    scope(() => {
      manualSeed(seedOfRank(seed, rank, step));
      return rand([1]).item();
    });
  const places = [0, 1, 2].flatMap((seed) =>
    [0, 1, 2, 3].flatMap((rank) => [0, 100].map((step) => [seed, rank, step])),
  );
  const all = () => places.map(([seed, rank, step]) => first(seed!, rank!, step!));
  expect(new Set(all()).size).toBe(places.length);
  expect(all()).toEqual(all());
});
