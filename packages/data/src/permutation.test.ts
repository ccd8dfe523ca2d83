import { expect, it } from "vitest";
import { permuted } from "./permutation.ts";

const order = (n: number, seed: number, epoch: number) =>
  Array.from({ length: n }, (_, i) => permuted(i, n, seed, epoch));

it("takes every number once, for every length up to 70, and powers of two and their neighbours", () => {
  for (const n of [...Array.from({ length: 70 }, (_, i) => i + 1), 255, 256, 257, 4095, 4097])
    expect(order(n, 5, 1).toSorted((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
});

it("differs between seeds and between epochs, also beyond 32 bits", () => {
  const places = [0, 1, 2 ** 32, 2 ** 40 + 1];
  const orders = new Set(places.flatMap((seed) => places.map((epoch) => order(40, seed, epoch).join())));
  expect(orders.size).toBe(16);
});

it("puts every number at every place equally often (χ²)", () => {
  const [n, epochs] = [10, 4000];
  const counts = new Float64Array(n * n);
  for (let epoch = 0; epoch < epochs; epoch++) for (let i = 0; i < n; i++) counts[i * n + permuted(i, n, 7, epoch)]!++;
  const expected = epochs / n;
  const chi = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(chi).toBeLessThan(132); // 81 degrees of freedom exceed it once in 3000
});

it("works for numbers beyond 32 bits", () => {
  const n = 2 ** 40 + 3;
  const seen = new Set(Array.from({ length: 100 }, (_, i) => permuted(i * 10_000_000_000, n, 1, 0)));
  expect(seen.size).toBe(100);
  for (const value of seen) expect(value).toBeLessThan(n);
});
