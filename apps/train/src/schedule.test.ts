import { describe, expect, it } from "vitest";
import { embedded, readRecipe } from "./recipe.ts";
import { learningRate } from "./schedule.ts";

const recipe = readRecipe(embedded, ["steps=101", "optimizer.lr=1", "schedule.warmup=20", "schedule.final=0.1"]);

describe("the cosine schedule", () => {
  it("warms up in equal steps and reaches the top when it is over", () => {
    expect(learningRate(0, recipe)).toBeCloseTo(1 / 20);
    expect(learningRate(9, recipe)).toBeCloseTo(0.5);
    expect(learningRate(19, recipe)).toBe(1);
    expect(learningRate(20, recipe)).toBe(1);
  });

  it("is half-way between top and end at half time, and at the end on the last step", () => {
    expect(learningRate(60, recipe)).toBeCloseTo(0.55);
    expect(learningRate(100, recipe)).toBeCloseTo(0.1);
  });

  it("stays constant when asked to", () => {
    const constant = readRecipe(embedded, ["schedule.name=constant", "optimizer.lr=0.5"]);
    expect(learningRate(399, constant)).toBe(0.5);
  });
});
