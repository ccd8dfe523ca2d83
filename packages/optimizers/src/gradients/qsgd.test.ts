import { describe, expect, it } from "vitest";
import { qsgd } from "../index.ts";
import { gradientContract, meansOf } from "../testing/gradient-contract.ts";
import { onRanks } from "../testing/on-ranks.ts";

gradientContract("qsgd", { create: () => qsgd({ bits: 3, bucket: 16 }) });

const bucket = 50;
const pattern = Array.from({ length: bucket }, (_, i) => Math.sin(3 * i) * (i % 7 === 2 ? 3 : 0.5));
const copies = 2000; // 1e5 draws
const gradient = Float32Array.from({ length: bucket * copies }, (_, i) => pattern[i % bucket]!);

describe("qsgd", () => {
  it("has the gradient as its mean, and stays within a level of it", async () => {
    const [mean] = await onRanks(2, async (group) => {
      return (await meansOf(group, qsgd({ bits: 3, bucket, seed: 3 }), [gradient])).means[0]!;
    });
    const level = Math.hypot(...pattern) / 3;
    for (const [j, value] of pattern.entries()) {
      const p = (Math.abs(value) / level) % 1;
      const σ = level * Math.sqrt((p * (1 - p)) / (2 * copies));
      const draws = mean!.filter((_, i) => i % bucket === j);
      expect(Math.abs(draws.reduce((a, b) => a + b, 0) / copies - value)).toBeLessThanOrEqual(4 * σ + 1e-6);
      expect(Math.max(...draws.map((draw) => Math.abs(draw - value)))).toBeLessThanOrEqual(level + 1e-6);
    }
  });

  it("is finite for a bucket of zeros and for a single element", async () => {
    for (const g of [new Float32Array(100), Float32Array.of(-2)]) {
      const [mean] = await onRanks(3, async (group) => (await meansOf(group, qsgd(), [g])).means[0]!);
      expect(mean).toEqual([...g]);
    }
  });

  it("draws anew in every step, on every rank, and with another seed", async () => {
    const g = new Float32Array(512).fill(1);
    const means = async (seed: number) =>
      (await onRanks(2, async (group) => (await meansOf(group, qsgd({ bits: 2, seed }), [g, g])).means))[0]!;
    const [first, other] = [await means(1), await means(2)];
    expect(first[0]).not.toEqual(first[1]);
    expect(first[0]).not.toEqual(other[0]);
    expect(await means(1)).toEqual(first);
    expect(new Set(first[0]).size).toBe(3); // both, one or none of the ranks drew the upper level
  });
});
