import { lineOf } from "@terse/options";
import { noGrad, tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { addLowRank, inDoubles } from "../../../../native/optimizers/src/testing/definition.ts";
import { randomFloats } from "../algorithms/random-floats.ts";
import { powersgd } from "../index.ts";
import { floats, gradientContract, ledgerOf, type MeanOracle, meansOf, spanOf } from "../testing/gradient-contract.ts";
import {
  added,
  gramSchmidt,
  largestDifference,
  type Matrix,
  matrix,
  meanOf,
  normOf,
  product,
  rowsOf,
  transposed,
} from "../testing/matrices.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, mean } from "../testing/optimizer-contract.ts";
import { noise } from "../testing/train-matrices.ts";

// The shapes of the contract's parameters as matrices; the second one is a vector.
const shapes = [[3, 7], undefined, [2, 34]] as const;
const offsets = [0, 64, 128];

/** Algorithms 1 and 2; every matrix is compressed that shrinks. */
function oracle(ranks: number, rank: number, options: Options): MeanOracle {
  const { useErrorFeedback = true, warmStart = true, startPowerSGDIter = 0 } = options;
  const errors = Array.from({ length: ranks }, () =>
    layerRanges().map(([begin, end]) => new Array<number>(end - begin).fill(0)),
  );
  const Qs: (Matrix | undefined)[] = [];
  return (g, step) =>
    layerRanges().flatMap(([begin, end], layer) => {
      const own = g.map((of) => of.slice(begin, end));
      const shape = shapes[layer];
      const [m, n] = shape ?? [1, end - begin];
      if ((m + n) * rank >= m * n || step < startPowerSGDIter) return mean(own);
      if (!warmStart) Qs[layer] = undefined;
      const seed = warmStart ? 0 : step;
      Qs[layer] ??= rowsOf(randomFloats(n * rank, { seed, stream: offsets[layer]! }), [n, rank]);
      const Ms = own.map((values, k) =>
        rowsOf(
          values.map((value, i) => value + errors[k]![layer]![i]!),
          [m, n],
        ),
      );
      const M = meanOf(Ms);
      const P = gramSchmidt(product(M, Qs[layer]!));
      Qs[layer] = product(transposed(M), P);
      const decoded = product(P, transposed(Qs[layer]!)).flat();
      if (useErrorFeedback)
        for (const [k, one] of Ms.entries()) errors[k]![layer] = one.flat().map((value, i) => value - decoded[i]!);
      return decoded;
    });
}

type Options = NonNullable<Parameters<typeof powersgd>[0]>;

const variants: Record<string, Options> = {
  "of rank 2, from step 2": { matrixApproximationRank: 2, startPowerSGDIter: 2 },
  "without error feedback and warm start": { useErrorFeedback: false, warmStart: false },
};
for (const [name, options] of Object.entries(variants))
  gradientContract(`powersgd ${name}`, {
    create: () => powersgd({ minCompressionRate: 1, ...options }),
    oracle: (_, ranks) => oracle(ranks, options.matrixApproximationRank ?? 1, options),
    tolerance: 1e-4, // of values up to 100
  });

describe("powersgd", () => {
  it("makes one step of power iteration as printed", async () => {
    const [got] = await onRanks(1, async (group) => {
      const compression = powersgd({ minCompressionRate: 1 });
      const init: typeof compression.init = (θ, vector) => {
        const state = compression.init(θ, vector);
        noGrad(() => state.replicated!.Q!.copy_(tensor([[1], [0]])));
        return state;
      };
      const { means, state } = await meansOf(
        group,
        { ...compression, init },
        [Float32Array.of(1, 2, 3, 4, 5, 6)],
        [3, 2],
      );
      return { mean: means[0]!, Q: await floats(state.replicated!.Q!) };
    });
    const p = [0.16903085, 0.50709255, 0.84515425];
    const q = [5.91607978, 7.43735744];
    const sign = Math.sign(got!.Q[0]!); // that of p, which QR is free to choose
    for (const [i, value] of got!.Q.entries()) expect(sign * value).toBeCloseTo(q[i]!, 5);
    for (const [i, value] of got!.mean.entries()) expect(value).toBeCloseTo(p[Math.floor(i / 2)]! * q[i % 2]!, 5);
  });

  it("loses nothing: the means and the mean of the errors add up to the mean of all gradients", async () => {
    const { sent, kept, given } = await ledgerOf(() => powersgd({ matrixApproximationRank: 2 }), {
      error: "gradientError",
      shape: [12, 20],
    });
    for (const [i, value] of given.entries()) expect(sent[i]! + kept[i]!).toBeCloseTo(value, 4);
  });

  // Kernels and messages are fp32; the definition of the kernel has fp64.
  it("loses nothing to 1e-12 in fp64, where its means are those of one rank with the mean gradient", () => {
    const [m, n, r, ranks] = [12, 20, 2, 3];
    const first = rowsOf(noise(n * r, 9), [n, r]);
    /** The means of 25 steps, and the mean of the errors that are left. */
    const run = (gradients: readonly ((step: number) => Matrix)[]) => {
      let [Q, errors] = [first, gradients.map(() => matrix(m, n, () => 0))];
      const means = Array.from({ length: 25 }, (_, step) => {
        const Ms = errors.map((e, i) => added(e, gradients[i]!(step)));
        const P = gramSchmidt(meanOf(Ms.map((M) => product(M, Q))));
        Q = meanOf(Ms.map((M) => product(transposed(M), P)));
        const decoded = new Float64Array(m * n);
        const factors = [P, Q].map((factor) => Float64Array.from(factor.flat()));
        inDoubles(() => addLowRank(decoded, factors[0]!, factors[1]!, { rank: r, keep: 0, scale: 1 }));
        const g = rowsOf(decoded, [m, n]);
        errors = Ms.map((M) => added(M, g, -1));
        return g;
      });
      return { means, error: meanOf(errors) };
    };
    const own = (rank: number) => (step: number) => rowsOf(noise(m * n, step, rank), [m, n]);
    const all = Array.from({ length: ranks }, (_, rank) => own(rank));
    const mean = (step: number) => meanOf(all.map((of) => of(step)));
    const [distributed, centralised] = [run(all), run([mean])];
    const sum = (of: readonly Matrix[]) => of.reduce((total, each) => added(total, each));
    const given = sum(Array.from({ length: 25 }, (_, step) => mean(step)));
    expect(largestDifference(added(sum(distributed.means), distributed.error), given)).toBeLessThanOrEqual(1e-12);
    for (const [step, g] of distributed.means.entries())
      expect(largestDifference(g, centralised.means[step]!)).toBeLessThanOrEqual(1e-10);
    expect(normOf(distributed.error)).toBeGreaterThan(1);
  });

  it("is exact for a mean of its rank, and goes on after a gradient of zeros", async () => {
    const [m, n] = [16, 24];
    const low = Float32Array.from({ length: m * n }, (_, i) => Math.sin(Math.floor(i / n)) * Math.cos(i % n));
    const zero = new Float32Array(m * n);
    await onRanks(2, async (group) => {
      const { means } = await meansOf(
        group,
        powersgd({ matrixApproximationRank: 2 }),
        [low, zero, zero, low, low],
        [m, n],
      );
      for (const [step, g] of [low, zero, zero].entries())
        for (const [i, value] of means[step]!.entries()) expect(value).toBeCloseTo(g[i]!, 5);
      const total = means.reduce(
        (sum, row) => sum.map((value, i) => value + row[i]!),
        new Array<number>(m * n).fill(0),
      );
      for (const [i, value] of total.entries()) expect(value).toBeCloseTo(3 * low[i]!, 4);
    });
  });

  it("finds the same directions in gradients of any size", async () => {
    const [m, n] = [12, 20];
    const gradients = Array.from({ length: 6 }, (_, step) => noise(m * n, step));
    const means = async (scale: number) => {
      const scaled = gradients.map((g) => g.map((value) => value * scale));
      const [got] = await onRanks(2, (group) => meansOf(group, powersgd(), scaled, [m, n]));
      return got!.means.map((row) => row.map((value) => value / scale));
    };
    const expected = (await means(1)).flat();
    for (const scale of [2 ** -90, 2 ** -70, 2 ** 58])
      for (const [i, value] of (await means(scale)).flat().entries()) expect(value).toBeCloseTo(expected[i]!, 5);
  });

  it("sends a matrix as it is where its factors would not be small enough, as PyTorch's hook decides", () => {
    const kinds = (shape: readonly number[], options: Options) => {
      const compression = powersgd(options);
      const { vector } = spanOf(compression, shape, { rank: 0, size: 2 });
      return compression.messages(vector, 3).map((message) => [message.kind, message.n]);
    };
    expect(kinds([10, 10], { matrixApproximationRank: 2 })).toEqual([
      ["computedMean", 20],
      ["mean", 20],
    ]); // 20 · 2 · 2 < 100
    expect(kinds([10, 10], { matrixApproximationRank: 3 })).toEqual([["computedMean", 100]]); // 20 · 3 · 2 ≥ 100
    expect(kinds([10, 10], { matrixApproximationRank: 3, minCompressionRate: 1 })).toEqual([
      ["computedMean", 30],
      ["mean", 30],
    ]);
    for (const matrixApproximationRank of [4, 9, 9999])
      expect(kinds([4, 100], { matrixApproximationRank, minCompressionRate: 1 })).toEqual([["computedMean", 400]]);
    expect(kinds([8, 2, 50], { matrixApproximationRank: 1 })).toEqual([
      ["computedMean", 8],
      ["mean", 100],
    ]);
    expect(kinds([100], { matrixApproximationRank: 1 })).toEqual([["computedMean", 100]]);
    expect(kinds([10, 10], { matrixApproximationRank: 1, startPowerSGDIter: 4 })).toEqual([["mean", 100]]);
  });

  it("refuses a rate with which factors could be more than their matrix", () => {
    expect(() => powersgd({ minCompressionRate: 0.5 })).toThrow(
      "powersgd.minCompressionRate: expected a number ≥ 1, got 0.5",
    );
  });

  it("remarks on a rank with which no matrix is compressed, and says the largest that compresses one", () => {
    const segments = [[10, 10], [64], [20, 3, 4]].map((shape, i) => {
      const length = shape.reduce((a, b) => a * b, 1);
      return { name: `${i}`, role: "matrix" as const, shape, offset: 256 * i, length };
    });
    const remark = (options: Options) => {
      const found = powersgd(options).remark!(segments);
      return found && lineOf(found);
    };
    // 20 × 12: 32 · 3 · 2 < 240 < 32 · 4 · 2
    expect(remark({ matrixApproximationRank: 3 })).toBeUndefined();
    for (const matrixApproximationRank of [4, 200, 9999])
      expect(remark({ matrixApproximationRank })).toBe(
        `powersgd.matrixApproximationRank: with ${matrixApproximationRank} no matrix of this model is compressed, and all gradients are sent whole; take at most 3`,
      );
    expect(remark({ matrixApproximationRank: 7, minCompressionRate: 1 })).toBeUndefined(); // 32 · 7 < 240
    expect(remark({ matrixApproximationRank: 8, minCompressionRate: 1 })).toContain("take at most 7");
    expect(remark({ minCompressionRate: 8 })).toBe(
      "powersgd.minCompressionRate: no matrix of this model shrinks 8 times, even with a rank of 1, and all gradients are sent whole",
    );
  });
});
