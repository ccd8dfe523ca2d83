import { describe, expect, it } from "vitest";
import { evenlySpread } from "./evenly-spread.ts";

describe("evenlySpread", () => {
  it.each([
    [4, 10, [0, 3, 6, 9]],
    [3, 4, [0, 1, 3]],
    [9, 3, [0, 1, 2]],
    [1, 100, [0]],
    [5, 0, []],
    [0, 10, []],
    [5, 1, [0]],
  ])("takes %i of %i", (count, total, numbers) => expect(evenlySpread(count, total)).toEqual(numbers));

  it("takes no number twice, and both ends", () => {
    for (let total = 1; total < 200; total++)
      for (const count of [2, 3, 10, 64]) {
        const numbers = evenlySpread(count, total);
        expect(new Set(numbers).size).toBe(Math.min(count, total));
        if (numbers.length > 1) expect([numbers[0], numbers.at(-1)]).toEqual([0, total - 1]);
      }
  });
});
