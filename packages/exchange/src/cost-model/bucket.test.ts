import { expect, it } from "vitest";
import { bestBuckets } from "./bucket.ts";

const elements = 1000;
/** α + n β */
const wire = (alpha: number, beta: number) => (n: number) => alpha + n * beta;

it("sends everything at once if there is no backward to overlap with", () => {
  const best = bestBuckets({ elements, backwardSeconds: 0, exchangeSeconds: wire(1, 0.01) });
  expect(best).toEqual({ count: 1, elements: 1000, exposedSeconds: 11 });
});

it("takes the fewest buckets within a hundredth of the best time, even if a message has no latency", () => {
  const best = bestBuckets({ elements, backwardSeconds: 100, exchangeSeconds: wire(0, 0.01), most: 10 });
  // With 10 buckets only the last one is exposed, for a second: 101 in all. 5 buckets take 102, 4 take 102.5.
  expect(best).toEqual({ count: 5, elements: 200, exposedSeconds: 2 });
});

it("weighs latencies against overlap", () => {
  // α = 1, N β = 16, T = 100: backward takes longer than the wire, and α + N β / B is exposed.
  const { exposedSeconds } = bestBuckets({ elements: 1024, backwardSeconds: 100, exchangeSeconds: wire(1, 1 / 64) });
  expect(exposedSeconds).toBeGreaterThanOrEqual(1 + 16 / 64);
  expect(exposedSeconds).toBeLessThanOrEqual(1.01 * (100 + 1 + 16 / 64) - 100);
  // If the wire takes longer, the first bucket's backward and all exchanges are sequential: T / B + B α + N β, least at
  // B = √(T / α).
  const slow = bestBuckets({ elements: 2 ** 20, backwardSeconds: 16, exchangeSeconds: wire(1, 17 / 2 ** 20) });
  expect(slow.count).toBe(4);
  expect(slow.exposedSeconds).toBeCloseTo(16 / 4 + 4 + 17 - 16, 9);
});

it("never has more buckets than elements", () => {
  const best = bestBuckets({ elements: 3, backwardSeconds: 9, exchangeSeconds: wire(0, 1) });
  expect(best).toEqual({ count: 3, elements: 1, exposedSeconds: 1 });
  expect(bestBuckets({ elements: 0, backwardSeconds: 9, exchangeSeconds: wire(0, 1) }).count).toBe(1);
});
