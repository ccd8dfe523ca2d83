import { expect, it } from "vitest";
import { cosine, exponential, naturalLogarithm, sine } from "./elementary.ts";

it("agrees with Math to 14 digits", () => {
  for (let i = -300; i <= 300; i++) {
    const x = i / 100;
    expect(Math.abs(sine(x) - Math.sin(x))).toBeLessThan(2e-15);
    expect(Math.abs(cosine(x) - Math.cos(x))).toBeLessThan(2e-15);
    expect(exponential(20 * x) / Math.exp(20 * x)).toBeCloseTo(1, 13);
    expect(naturalLogarithm(Math.exp(12 * x)) - Math.log(Math.exp(12 * x))).toBeCloseTo(0, 13);
  }
  expect([exponential(0), exponential(-800), naturalLogarithm(1)]).toEqual([1, 0, 0]);
  expect(naturalLogarithm(2 ** -53)).toBeCloseTo(-53 * Math.LN2, 12);
});
