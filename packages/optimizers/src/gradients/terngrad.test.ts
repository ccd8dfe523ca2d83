import { describe, expect, it } from "vitest";
import { terngrad } from "../index.ts";
import { gradientContract, meansOf } from "../testing/gradient-contract.ts";
import { onRanks } from "../testing/on-ranks.ts";

for (const scaler of ["shared", "own"] as const)
  gradientContract(`terngrad, ${scaler} scaler`, { create: () => terngrad({ scaler }) });

const pattern = [-1, -0.6, -0.25, -0.01, 0, 0.1, 0.3, 0.5, 0.75, 1];
const copies = 10_000; // 1e5 draws of each rank
const tiled = (factor: number) =>
  Float32Array.from({ length: pattern.length * copies }, (_, i) => factor * pattern[i % 10]!);

describe("terngrad", () => {
  it.each(["shared", "own"] as const)("has the mean of the gradients as its mean, with a %s scaler", async (scaler) => {
    const factors = [1, 0.5];
    const [mean] = await onRanks(2, async (group) => {
      const { means } = await meansOf(group, terngrad({ scaler, clip: 0, seed: 5 }), [tiled(factors[group.rank]!)]);
      return means[0]!;
    });
    for (const [j, value] of pattern.entries()) {
      const draws = mean!.filter((_, i) => i % 10 === j);
      // The variance of one rank is s² p (1 − p), p = |g| / s.
      const variance = factors.reduce((sum, f) => {
        const s = scaler === "shared" ? 1 : f;
        return sum + s * Math.abs(f * value) - (f * value) ** 2;
      }, 0);
      const σ = Math.sqrt(variance / 4 / copies);
      const average = draws.reduce((a, b) => a + b, 0) / copies;
      expect(Math.abs(average - 0.75 * value)).toBeLessThanOrEqual(4 * σ + 1e-7);
    }
  });

  it("sends whole multiples of the shared scaler divided by the number of ranks", async () => {
    const means = await onRanks(3, async (group) => {
      const g = Float32Array.from({ length: 100 }, (_, i) => Math.sin(i + 7 * group.rank) * 2 ** group.rank);
      g[17] = 4 * Math.sign(g[17]!) * (group.rank === 2 ? 1 : 0.1); // the largest of all, on rank 2
      return (await meansOf(group, terngrad({ clip: 0 }), [g])).means[0]!;
    });
    for (const mean of means) {
      expect(mean).toEqual(means[0]);
      for (const value of mean) expect(value / (4 / 3)).toBeCloseTo(Math.round(value / (4 / 3)), 5);
    }
  });

  it("clips at 2.5 standard deviations of a rank's own layer, and not where they are 0", async () => {
    const outlier = Float32Array.from({ length: 1000 }, (_, i) => (i === 3 ? 100 : Math.sin(i)));
    const m = outlier.reduce((a, b) => a + b, 0) / 1000;
    const σ = Math.sqrt(outlier.reduce((sum, value) => sum + (value - m) ** 2, 0) / 1000);
    for (const [g, scale] of [
      [outlier, 2.5 * σ],
      [new Float32Array(1000).fill(0.5), 0.5],
      [Float32Array.of(-3), 3],
      [new Float32Array(10), 0],
    ] as const) {
      const [mean] = await onRanks(2, async (group) => (await meansOf(group, terngrad(), [g])).means[0]!);
      expect(Math.max(...mean!.map(Math.abs))).toBeCloseTo(scale, 4);
    }
  });
});
