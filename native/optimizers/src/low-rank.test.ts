import { describe, expect, it } from "vitest";
import { addLowRank, normalizeColumns, useThreads } from "./index.ts";
import { type LowRankKernels, open } from "./kernels.ts";
import * as definition from "./testing/definition.ts";
import { anyFloats, bits, random } from "./testing/inputs.ts";

/** Tails of every tile, in rows, columns and rank. */
const shapes: [m: number, n: number, r: number][] = [
  ...[1, 2, 3, 4, 5, 7, 12, 13, 25].flatMap((m) =>
    [1, 2, 3, 15, 16, 17, 33, 70].map((n) => [m, n, 3] as [number, number, number]),
  ),
  [5, 6, 1],
  [97, 31, 5],
  [200, 65, 64],
];

const floats = (n: number, seed: number): Float32Array => {
  const next = random(seed);
  return Float32Array.from({ length: n }, () => next() * 2 - 1);
};

describe.each(open().lowRanks())("low rank $implementation", (lowRank: LowRankKernels) => {
  it("adds a product with the bits of the definition, for every shape", () => {
    for (const [m, n, r] of shapes)
      for (const change of [
        { keep: 1, scale: -0.05 },
        { keep: 0.9, scale: 0.3 },
      ]) {
        const arrays = () => [anyFloats(m * n + 1, 1), anyFloats(m * r + 3, 2), anyFloats(n * r + 2, 3)] as const;
        const views = ([x, p, q]: ReturnType<typeof arrays>) => [x.subarray(1), p.subarray(3), q.subarray(2)] as const;
        const [mine, expected] = [arrays(), arrays()];
        lowRank.add(...views(mine), { rank: r, ...change });
        definition.addLowRank(...views(expected), { rank: r, ...change });
        expect(mine.map(bits), `${m} × ${n}, rank ${r}`).toEqual(expected.map(bits));
      }
  });

  it("gives columns the norm 1 with the bits of the definition, and drops those of round-off", () => {
    for (const [n, r] of [
      [1, 1],
      [2, 7],
      [33, 5],
      [128, 16],
    ] as const) {
      const columns = floats(n * r, 4);
      for (let i = 0; i < n; i++) columns[i * r] = columns[i * r]! * 1e-9;
      const q = floats(n * r, 5);
      const [mine, expected] = [
        [q.slice(), columns.slice()],
        [q.slice(), columns.slice()],
      ] as const;
      lowRank.normalize(...mine, { rank: r, threshold: 1e-6 });
      definition.normalizeColumns(...expected, { rank: r, threshold: 1e-6 });
      expect(mine.map(bits)).toEqual(expected.map(bits));
      for (let k = 0; k < r; k++) {
        const norm = Math.hypot(...Array.from({ length: n }, (_, i) => mine[1][i * r + k]!));
        if (k === 0 && r > 1) {
          expect(norm).toBe(0);
          expect(mine[0][0]).toBe(q[0]);
        } else expect(norm).toBeCloseTo(1, 6);
      }
    }
  });

  it("leaves q as it is where all columns are 0", () => {
    const [q, columns] = [floats(12, 1), new Float32Array(12)];
    lowRank.normalize(q, columns, { rank: 3, threshold: 1e-6 });
    expect([q, columns]).toEqual([floats(12, 1), new Float32Array(12)]);
  });
});

describe("the definition of a sum", () => {
  it("rounds a product and its sum once", () => {
    const x = new Float32Array([0]);
    const sumOf = (p: number[], q: number[]) => {
      definition.addLowRank(x, Float32Array.from(p), Float32Array.from(q), { rank: p.length, keep: 0, scale: 1 });
      return x[0]!;
    };
    // (1 + 2⁻¹²)² = 1 + 2⁻¹¹ + 2⁻²⁴: the last bit is lost when the product is rounded first.
    expect(sumOf([-1, 1 + 2 ** -12], [1 + 2 ** -11, 1 + 2 ** -12])).toBe(2 ** -24);
    // Halfway between two floats but for a rest that a double cannot hold.
    expect(sumOf([1, 2 ** -24, 2 ** -50], [1, 1, 2 ** -50])).toBe(1);
    expect(sumOf([2 ** -50, 1 + 2 ** -23, 2 ** -24], [2 ** -50, 1, 1 + 2 ** -23])).toBe(1 + 2 ** -22);
  });
});

describe("addLowRank", () => {
  it("gives the same bits on several threads", () => {
    const [m, n, r] = [700, 300, 24];
    const run = (threads: number) => {
      useThreads(threads);
      const x = floats(m * n, 1);
      addLowRank(x, floats(m * r, 2), floats(n * r, 3), { rank: r, keep: 0.5, scale: 2 });
      useThreads(1);
      return x;
    };
    const one = run(1);
    for (const threads of [2, 3, 8]) expect(run(threads)).toEqual(one);
  });

  it("names the array that has the wrong length, and a rank that is none", () => {
    const f = (n: number) => new Float32Array(n);
    const change = { rank: 2, keep: 1, scale: 1 };
    expect(() => addLowRank(f(6), f(4), f(5), change)).toThrow("q: 5 floats are no rows of 2");
    expect(() => addLowRank(f(5), f(4), f(6), change)).toThrow(
      "x: expected 6 floats, one for each row of p and each row of q",
    );
    expect(() => addLowRank(f(6), f(4), f(6), { ...change, rank: 0 })).toThrow("rank: expected an integer >= 1");
    expect(() => normalizeColumns(f(4), f(6), { rank: 2, threshold: 0 })).toThrow("q: expected 6 floats");
  });
});
