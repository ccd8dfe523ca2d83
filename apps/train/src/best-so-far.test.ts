import { describe, expect, it } from "vitest";
import { BestSoFar, type Validated } from "./best-so-far.ts";
import { readRecipe } from "./recipe.ts";

const evaluating = ["evaluate.every=10"];
const stopOf = (...options: string[]) => {
  const { stop } = readRecipe("gpt-small", [...evaluating, ...options.map((option) => `stop.${option}`)]);
  return { stop };
};

/** After which evaluation, counted from 1, a run with these losses ends, and where the losses were the best so far. */
function ends(losses: readonly number[], options: readonly string[]): { after: number | undefined; best: number[] } {
  const recipe = stopOf(...options);
  const seen = new BestSoFar(recipe);
  const best: number[] = [];
  for (const [i, loss] of losses.entries()) {
    if (seen.saw(10 * (i + 1), loss)) best.push(i + 1);
    if (seen.reasonToStop(recipe.stop)) return { after: i + 1, best };
  }
  return { after: undefined, best };
}

describe("the best so far", () => {
  it("is the lowest loss; the run ends after as many evaluations without a lower one as patience says", () => {
    expect(ends([3, 2, 2.5, 2.1, 1.9, 2, 2, 2], ["patience=3"])).toEqual({ after: 8, best: [1, 2, 5] });
    expect(ends([3, 2, 2, 2], ["patience=2"])).toEqual({ after: 4, best: [1, 2] }); // as low is not lower
    expect(ends([3, 2, 1, 0.5], ["patience=1"])).toEqual({ after: undefined, best: [1, 2, 3, 4] });
  });

  it("need not be lower by minDelta to be the best save, but to make the run go on", () => {
    // Keras' EarlyStopping compares with the last loss that was lower by min_delta: 2, 1.95, 1.92 are not below 2 −
    // 0.1.
    expect(ends([2, 1.95, 1.92, 1.9], ["patience=2", "minDelta=0.1"])).toEqual({ after: 3, best: [1, 2, 3] });
    expect(ends([2, 1.95, 1.89, 1.85, 1.78], ["patience=2", "minDelta=0.1"])).toEqual({
      after: undefined,
      best: [1, 2, 3, 4, 5],
    });
  });

  it("ends a run where it reaches the target", () => {
    expect(ends([3, 2, 1.5, 1], ["target=1.5"]).after).toBe(3);
    const recipe = stopOf("target=1.5", "patience=9");
    const seen = new BestSoFar(recipe);
    seen.saw(10, 1.25);
    expect(seen.reasonToStop(recipe.stop)).toEqual({
      key: "stop.target",
      goesOn: "--stop.target=null",
      why: "the validation loss was 1.2500 after 10 steps, and stop.target is 1.5",
    });
  });

  it("is never a loss that is not a finite number, which counts as one that is not lower", () => {
    const [nan, infinite] = [Number.NaN, Number.POSITIVE_INFINITY];
    expect(ends([nan, infinite, 3, nan, nan], ["patience=3"])).toEqual({ after: undefined, best: [3] });
    expect(ends([3, nan, Number.NEGATIVE_INFINITY], ["patience=2", "target=0"])).toEqual({ after: 3, best: [1] });
  });

  it("counts no step twice, and goes on from what a save has as if there had been none", () => {
    const losses = [3, 2, 2.5, 2.1, 1.9, 2];
    const whole = new BestSoFar(stopOf("patience=9"));
    for (const [i, loss] of losses.entries()) {
      expect(whole.saw(i, loss)).toBe([1, 4].includes(i)); // step 0 does not count
      const saved = whole.validated && (JSON.parse(JSON.stringify(whole.validated)) as Validated);
      const resumed = new BestSoFar(stopOf("patience=9"), saved);
      expect(resumed.saw(i, -1)).toBe(false);
      for (const [more, later] of losses.entries()) resumed.saw(more, later);
      expect(resumed.validated).toEqual({ at: 5, loss: 2, best: { step: 4, loss: 1.9 }, lowest: 1.9, without: 1 });
    }
  });
});

describe("the keys stop and save.best", () => {
  it.each([
    [["stop.minDelta=0.1", ...evaluating], /^stop: says nothing: give stop\.patience, stop\.target or both/],
    [["stop.patience=3", "evaluate.every=0"], /^stop: looks at evaluations, and evaluate\.every is 0/],
    [["save.best=true", "evaluate.every=0"], /^save\.best: looks at evaluations, and evaluate\.every is 0/],
    [
      ["save.best=true", "local.syncEvery=4", "steps=100", "evaluate.every=10"],
      /^save\.best: with local .* and evaluate\.every is 10; set evaluate\.every to (8|12)$/,
    ],
  ])("are refused where they do not fit: %j", (overrides, problem) => {
    expect(() => readRecipe("gpt-small-adamw", overrides)).toThrow(problem);
  });
});
