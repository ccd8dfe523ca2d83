import { noGrad, tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { randomFloats } from "../algorithms/random-floats.ts";
import { powersgd } from "../index.ts";
import { floats, gradientContract, ledgerOf, type MeanOracle, meansOf, spanOf } from "../testing/gradient-contract.ts";
import { gramSchmidt, type Matrix, meanOf, product, rowsOf, transposed } from "../testing/matrices.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, mean } from "../testing/optimizer-contract.ts";

const shapes = [[3, 7], undefined, [2, 34]] as const; // of the contract's parameters as matrices; the second one is a vector
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
    const remark = (options: Options) => powersgd(options).remark!(segments);
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
