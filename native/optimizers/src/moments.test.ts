import { describe, expect, it } from "vitest";
import { type MomentsKernels, open } from "./kernels.ts";
import * as definition from "./testing/definition.ts";
import { anyBytes, anyFloats, bits, lengths } from "./testing/inputs.ts";

const betas = { beta1: 0.9, beta2: 0.999 };
const updates = [
  { first: 1, second: 1, eps: 1e-6, weightDecay: 0.01 },
  { first: 1 / (1 - 0.9 ** 3), second: 1 / Math.sqrt(1 - 0.999 ** 3), eps: 1e-8, weightDecay: 0 },
];
const positive = (n: number, seed: number) => anyFloats(n, seed).map(Math.abs);
/** Arrays at odd offsets in memory. */
const placed = (x: Float32Array, offset: number) => {
  const memory = new Float32Array(x.length + offset);
  memory.set(x, offset);
  return memory.subarray(offset);
};

describe.each(open().moments())("Adam's moments, $implementation", (moments: MomentsKernels) => {
  it("accumulates with the bits of the definition, for every length, at odd offsets", () => {
    for (const n of lengths) {
      const arrays = () => [placed(anyFloats(n, 1), 1), placed(positive(n, 2), 3), placed(anyFloats(n, 3), 2)] as const;
      const [mine, expected] = [arrays(), arrays()];
      const options = { ...betas, gradientScale: 0.37 };
      expect(moments.accumulate(...mine, options)).toBe(n);
      definition.accumulateMoments(...expected, options);
      expect(mine.map(bits), `n = ${n}`).toEqual(expected.map(bits));
    }
  });

  it("takes a packed momentum in place of m, in updates and in a refreshed variance, with the bits of a plain one", () => {
    for (const n of [...lengths, 70_001])
      for (const [scale, hold] of [
        [0.25, undefined],
        [0.25, anyBytes(Math.ceil(n / 8), 4)],
        [0, undefined],
      ] as const) {
        const packed = { signs: anyBytes(Math.ceil(n / 8), 5), scale, hold };
        const mean = definition.unpacked(packed, n);
        const [θ, m, last] = [placed(anyFloats(n, 1), 1), placed(anyFloats(n, 2), 3), placed(anyFloats(n, 2), 3)];
        const [v, fresh, frozen] = [positive(n, 3), placed(positive(n, 4), 2), positive(n, 6)];
        const [expectedθ, expectedFresh] = [θ.slice(), fresh.slice()];
        const update = { ...updates[0]!, rate: 0.003 };
        const options = { ...betas, eps: 1e-8, root: false };

        const ratio = moments.refresh(fresh, frozen, m, packed, options);
        expect(ratio).toBe(moments.refresh(expectedFresh, frozen, mean, last, options));
        expect([m, fresh].map(bits), `n = ${n}`).toEqual([mean, expectedFresh].map(bits));
        m.fill(7);
        moments.apply(θ, m, v, update, packed);
        moments.apply(expectedθ, mean, v, update);
        expect([θ, m].map(bits), `n = ${n}`).toEqual([expectedθ, mean].map(bits));
      }
  });

  it("returns the index of the first element that is not finite, or whose square is not", () => {
    for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY, 1e30])
      for (const at of [0, 63, 70, 99]) {
        const g = anyFloats(100, 1);
        g[at] = bad;
        g[99] = Number.NaN;
        expect(moments.accumulate(anyFloats(100, 2), positive(100, 3), g, betas)).toBe(at);
      }
  });

  it("applies updates with the bits of the definition", () => {
    for (const n of lengths)
      for (const update of updates) {
        const [θ, m, v] = [placed(anyFloats(n, 1), 1), placed(anyFloats(n, 2), 3), placed(positive(n, 3), 2)] as const;
        const expected = θ.slice();
        moments.apply(θ, m, v, { ...update, rate: 0.003 });
        definition.applyAdamUpdate(expected, m, v, { ...update, rate: 0.003 });
        expect(bits(θ), `n = ${n}`).toEqual(bits(expected));
      }
  });

  it("adds the squares of the weights and of the update, the same numbers for every implementation", () => {
    const [scalar] = open().moments().slice(-1);
    for (const n of [...lengths, 70_000, 200_003])
      for (const update of updates) {
        const [θ, m, v] = [anyFloats(n, 1), anyFloats(n, 2), positive(n, 3)] as const;
        const got = moments.squares(θ, m, v, update);
        expect(got).toEqual(scalar!.squares(θ, m, v, update));
        const step = new Float32Array(n);
        definition.applyAdamUpdate(step, m, v, { ...update, weightDecay: 0, rate: -1 });
        const u = step.map((value, i) => Math.fround(value + Math.fround(Math.fround(update.weightDecay) * θ[i]!)));
        const square = (x: Float32Array) => x.reduce((sum, value) => sum + value * value, 0);
        for (const [k, x] of [θ, u].entries())
          expect(got[k]).toBeCloseTo(square(x), -Math.log10(1e-12 + square(x) * 1e-10));
      }
  });

  it("does both in one pass with the same bits, and names the first element that is not finite", () => {
    const options = { ...betas, gradientScale: 0.37 };
    const [update] = updates as [(typeof updates)[number]];
    for (const n of [...lengths, 70_000, 200_003]) {
      const θ = anyFloats(n, 4);
      const arrays = () => [anyFloats(n, 1), positive(n, 2), anyFloats(n, 3)] as const;
      const [mine, expected] = [arrays(), arrays()];
      const got = moments.accumulateAndSquares!(θ, ...mine, options, update);
      expect(moments.accumulate(...expected, options)).toBe(n);
      expect(got).toEqual([...moments.squares(θ, expected[0], expected[1], update), n]);
      expect(mine.map(bits), `n = ${n}`).toEqual(expected.map(bits));
      if (n < 70_000) continue;
      mine[2][69_000] = Number.NaN;
      mine[2][n - 1] = Number.NaN;
      expect(moments.accumulateAndSquares!(θ, ...mine, options, update)[2]).toBe(69_000);
    }
  });

  it("refreshes a variance, and finds the largest ratio, with the bits of the definition", () => {
    for (const n of lengths)
      for (const root of [true, false]) {
        const options = { ...betas, eps: 1e-8, root };
        const frozen = positive(n, 1);
        const fresh = placed(positive(n, 2), 1);
        const [m, last] = [placed(anyFloats(n, 3), 3), placed(anyFloats(n, 4), 2)];
        const expected = fresh.slice();
        const ratio = definition.refreshVariance(expected, frozen, m, last, options);
        expect(moments.refresh(fresh, frozen, m, last, options)).toBe(ratio);
        expect(bits(fresh), `n = ${n}`).toEqual(bits(expected));
      }
  });

  it("finds the ratio of variances that are smaller than ε, and leaves out elements without a gradient before", () => {
    const ratioOf = (frozen: number[], fresh: number[], root: boolean) => {
      const zeros = new Float32Array(frozen.length);
      const options = { beta1: 0.9, beta2: 0.5, eps: 1e-8, root };
      return moments.refresh(Float32Array.from(fresh), Float32Array.from(frozen), zeros, zeros, options);
    };
    // fresh is halved: 1e-10 / 1e-11
    expect(ratioOf([1e-10, 0, 4e-12], [2e-11, 1, 1e-11], false)).toBeCloseTo(10, 3);
    expect(ratioOf([1e-10, 0, 4e-12], [2e-11, 1, 1e-11], true)).toBeCloseTo((1e-5 + 1e-8) / (1e-11 ** 0.5 + 1e-8), 5);
    expect(ratioOf([1e-10, 0], [8e-10, 0], false)).toBeCloseTo(0.25, 5); // not 1, of 0 / 0
    expect(ratioOf([0, 0], [1, 0], false)).toBe(0);
  });

  it("refuses arrays of other lengths, and numbers that 32 bits cannot hold", () => {
    const x = (n = 8) => new Float32Array(n);
    expect(() => moments.accumulate(x(), x(7), x(), betas)).toThrow("v: expected 8 floats");
    expect(() => moments.apply(x(), x(), x(9), { ...updates[0]!, rate: 1 })).toThrow("v: expected 8 floats");
    expect(() => moments.apply(x(), x(), x(), { ...updates[0]!, rate: 1e39 })).toThrow("rate: expected a number");
    const packed = { signs: new Uint8Array(2), scale: 1 };
    expect(() => moments.apply(x(), x(), x(), { ...updates[0]!, rate: 1 }, packed)).toThrow("signs: expected 1 bytes");
  });
});
