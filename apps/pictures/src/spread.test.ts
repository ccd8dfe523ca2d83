import { expect, it } from "vitest";
import { deviationOf, spreadOf } from "./spread.ts";

it("has the mean and the ends of several values", () => {
  expect(spreadOf([3, 1, 8])).toEqual({ mean: 4, least: 1, most: 8 });
});

it("has the deviation of a sample, as numpy.std(ddof=1), and none of one value", () => {
  expect(deviationOf([2, 4, 4, 4, 5, 5, 7, 9])).toBeCloseTo(2.138089935299395, 12);
  expect(deviationOf([1])).toBeUndefined();
});
