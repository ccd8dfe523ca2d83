import { readRecipe } from "@terse/train/recipe";
import { describe, expect, it } from "vitest";
import { recipe } from "../convergence/convergence.ts";
import { methods } from "./methods.ts";
import { beginOf, overridesFor } from "./overrides-for.ts";

describe.each(Object.entries(methods))("%s", (_, method) => {
  it("is a recipe whose ranks take as many rows in a step as all others", () => {
    const { data, local, steps } = readRecipe(recipe, overridesFor(method, beginOf(method), []));
    expect(data.batchSize * (method.workers ?? 4)).toBe(32);
    expect(local?.syncEvery).toBe(method.syncEvery);
    expect(steps).toBe(method.steps ?? 400);
  });

  it("searches its settings, or takes those of a method that does", () => {
    const owner = typeof method.search === "string" ? methods[method.search]! : method;
    expect(typeof owner.search).toBe("object");
  });
});
