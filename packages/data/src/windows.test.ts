import { describe, expect, it } from "vitest";
import { evenStarts, rowsAt, trainingStart } from "./windows.ts";

describe("trainingStart", () => {
  it("is uniform over all starts, including both ends (χ² over 16 bins)", () => {
    const bins = new Array(16).fill(0);
    let [least, most] = [Infinity, -Infinity];
    for (let step = 0; step < 200; step++)
      for (let row = 0; row < 80; row++) {
        const start = trainingStart(7, step, row, 1000);
        least = Math.min(least, start);
        most = Math.max(most, start);
        bins[Math.floor((start * 16) / 1000)]++;
      }
    expect([least, most]).toEqual([0, 999]);
    // Bins of 62 or 63 starts each; 15 degrees of freedom exceed 44.3 once in 10 000.
    const expected = bins.map(
      (_, i) => (16_000 * (Math.ceil(((i + 1) * 1000) / 16) - Math.ceil((i * 1000) / 16))) / 1000,
    );
    expect(bins.reduce((sum, n, i) => sum + (n - expected[i]!) ** 2 / expected[i]!, 0)).toBeLessThan(44.3);
  });

  it("changes with the seed, the step and the row, also beyond 32 bits", () => {
    const places = [0, 1, 2 ** 32, 2 ** 32 + 1, 2 ** 52];
    const starts = new Set<number>();
    for (const seed of places)
      for (const step of places) for (const row of places) starts.add(trainingStart(seed, step, row, 2 ** 50));
    expect(starts.size).toBe(5 ** 3);
  });

  it("is 0 if there is only one start", () => expect(trainingStart(1, 2, 3, 1)).toBe(0));
});

describe("evenStarts", () => {
  it.each([
    [4, 10, 100, [0, 30, 60, 90]],
    [3, 10, 30, [0, 10, 20]],
    [9, 10, 39, [0, 14, 29]],
    [1, 10, 100, [0]],
    [5, 10, 9, []],
    [0, 10, 100, []],
    [5, 10, 10, [0]],
  ])("puts %i windows of %i into %i", (count, length, total, starts) => {
    expect(evenStarts(count, length, total)).toEqual(starts);
  });

  it("has no overlaps, stays inside the text, and reaches both ends", () => {
    for (let total = 1; total < 200; total++)
      for (const length of [1, 2, 7, 16])
        for (const count of [2, 3, 10, 64]) {
          const starts = evenStarts(count, length, total);
          expect(starts.length).toBe(Math.min(count, Math.floor(total / length)));
          for (let i = 1; i < starts.length; i++) expect(starts[i]! - starts[i - 1]!).toBeGreaterThanOrEqual(length);
          if (starts.length > 1) expect([starts[0], starts.at(-1)! + length]).toEqual([0, total]);
        }
  });
});

describe("rowsAt", () => {
  it("gives each window's bytes, and the bytes that start one later", () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => 255 - i);
    const { tokens, next } = rowsAt(bytes, [0, 250], 3);
    expect(tokens).toEqual(BigInt64Array.of(255n, 254n, 253n, 5n, 4n, 3n));
    expect(next).toEqual(BigInt64Array.of(254n, 253n, 252n, 4n, 3n, 2n));
  });
});
