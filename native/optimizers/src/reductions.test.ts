import { describe, expect, it } from "vitest";
import { open, type ReductionKernels } from "./kernels.ts";
import { anyFloats, bits, lengths } from "./testing/inputs.ts";

describe.each(open().reductions())("reductions $implementation", (reductions: ReductionKernels) => {
  it("sums squares exactly where fp64 is exact", () => {
    for (const n of lengths) {
      const x = Float32Array.from({ length: n + 1 }, (_, i) => ((i * 37) % 101) - 50); // every partial sum is an integer
      const expected = x.subarray(1).reduce((sum, value) => sum + BigInt(value) ** 2n, 0n);
      expect(reductions.sumOfSquares(x.subarray(1))).toBe(Number(expected));
    }
  });

  it("sums squares to fp64 accuracy otherwise, with the same bits at every alignment", () => {
    const x = anyFloats(8000, 1).map((value) => value * 1e-3);
    const squares = [...x].map((value) => value * value).sort((a, b) => a - b); // ascending: the plain sum is then nearly exact
    const expected = squares.reduce((sum, square) => sum + square, 0);
    const sum = reductions.sumOfSquares(x);
    expect(Math.abs(sum - expected) / expected).toBeLessThan(1e-14);
    const shifted = new Float32Array(8003);
    shifted.set(x, 3);
    expect(reductions.sumOfSquares(shifted.subarray(3))).toBe(sum);
  });

  it("sums the squares of a difference in the order of other sums, and writes nothing else", () => {
    for (const n of [...lengths, 65_536, 65_537, 200_003]) {
      const [a, b, d] = [anyFloats(n, 1), anyFloats(n, 2), new Float32Array(n + 2).fill(-77.5)];
      const expected = a.map((value, i) => value - b[i]!);
      const sum = reductions.difference!(d.subarray(1, n + 1), a, b);
      expect(sum).toBe(reductions.sumOfSquares(expected));
      expect(bits(d.subarray(1, n + 1))).toEqual(bits(expected));
      expect([d[0], d[n + 1]]).toEqual([-77.5, -77.5]);
    }
  });

  it("does not overflow or underflow like fp32", () => {
    expect(reductions.sumOfSquares(new Float32Array([3e38, 4e38 / 4]))).toBeCloseTo(1e77, -70);
    expect(reductions.sumOfSquares(new Float32Array([2 ** -149]))).toBe(2 ** -298);
  });

  it("propagates NaN and infinity", () => {
    for (const at of [0, 40, 99]) {
      const x = new Float32Array(100);
      x[at] = Number.NEGATIVE_INFINITY;
      expect(reductions.sumOfSquares(x)).toBe(Number.POSITIVE_INFINITY);
      x[at] = Number.NaN;
      expect(reductions.sumOfSquares(x)).toBeNaN();
    }
  });
});
