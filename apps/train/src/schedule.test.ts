import { describe, expect, it } from "vitest";
import { learningRate, type Schedule } from "./schedule.ts";

const schedule: Schedule = { steps: 101, lr: 1, warmup: 20, final: 0.1 };

describe("the cosine schedule", () => {
  it("warms up in equal steps to the highest rate", () => {
    expect(learningRate(0, schedule)).toBeCloseTo(1 / 20);
    expect(learningRate(9, schedule)).toBeCloseTo(0.5);
    expect(learningRate(19, schedule)).toBe(1);
    expect(learningRate(20, schedule)).toBe(1);
  });

  it("is half-way down at half time, and at its end in the last step", () => {
    expect(learningRate(60, schedule)).toBeCloseTo(0.55);
    expect(learningRate(100, schedule)).toBeCloseTo(0.1);
  });

  it("cuts a warm-up that is longer than half the run", () => {
    const short = { ...schedule, steps: 10, warmup: 40 };
    expect(learningRate(4, short)).toBe(1);
    expect(learningRate(9, short)).toBeCloseTo(0.1);
    expect(learningRate(0, { ...schedule, steps: 1 })).toBe(1);
  });

  it("can stay constant", () => {
    expect(learningRate(100, { ...schedule, name: "constant" })).toBe(1);
  });
});
