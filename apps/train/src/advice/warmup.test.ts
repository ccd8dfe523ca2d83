import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readRecipe } from "../recipe.ts";
import { settledLayers, settledText } from "./warmup.ts";

const names = ["embedding.weight", "blocks.0.attention_norm.weight", "norm.weight", "head.weight"];
const recipes = join(import.meta.dirname, "../../recipes");
const recipeOf = (method: string, ...others: string[]) =>
  readRecipe(join(recipes, `gpt-small-${method}.yaml`), ["model.preset=nano", "model.layers=1", ...others]);

/** Measures after every tenth step of 91: `values` by layer, from the number of steps taken. */
const linesOf = (values: Record<string, readonly (((steps: number) => number) | null)[]>) =>
  Array.from({ length: 10 }, (_, i) => 10 * i).map((step) => ({
    step,
    "layers/names": names,
    ...Object.fromEntries(
      Object.entries(values).map(([key, each]) => [`layers/${key}`, each.map((of) => of?.(step + 1) ?? null)]),
    ),
  }));

const beta2 = 0.999;
const correction = (steps: number) => 1 - beta2 ** steps;
const still = (norm: number) => (steps: number) => norm * correction(steps); // ‖v̂‖ is always the same
const settles = (steps: number) => correction(steps) * (steps < 31 ? 5 : 1);
const falls = (steps: number) => correction(steps) * 0.97 ** steps;

describe("the advice on a warm-up", () => {
  it("names the layers whose variance still changes, and the steps after which the others did not", () => {
    const [settled, ...others] = settledLayers(
      recipeOf("adamw"),
      linesOf({ variance_norms: [falls, settles, still(2), still(0.1)] }),
    );
    expect(others).toEqual([]);
    expect(settled).toMatchObject({ what: "‖v‖", layers: 4, settled: 3, warmup: 31 });
    // measures of the last third follow that after 51 steps, at or before 2/3 of 91
    expect(settled!.moving).toEqual([{ layer: "embedding.weight", change: expect.closeTo(0.97 ** 40 - 1, 6) }]);
    expect(settledText(settled!)).toBe(
      "‖v‖ of 3 of 4 layers changed by less than 10% over the last third of the run; still moving: embedding.weight (−70%); a warm-up of about 31 steps would have held for the others",
    );
  });

  it("does not take the beginning of v at 0 for a change, and leaves out layers without a gradient", () => {
    const [settled] = settledLayers(
      recipeOf("adamw"),
      linesOf({ variance_norms: [still(1), still(3), () => 0, null] as never }),
    );
    expect(settled).toMatchObject({ layers: 2, settled: 2, moving: [], warmup: 1 });
    expect(settledText(settled!)).toBe(
      "‖v‖ of 2 of 2 layers changed by less than 10% over the last third of the run; a warm-up of about 1 step would have held",
    );
    const [other] = settledLayers(
      recipeOf("adamw", "optimizer.beta2=0.9"),
      linesOf({ variance_norms: [still(1), still(3), still(1), still(1)] }),
    );
    expect(other).toMatchObject({ settled: 0, warmup: null }); // with β₂ 0.9 v is complete after 40 steps, so this v grows
    expect(settledText(other!)).toMatch(
      / \(\+\d+%\), 1 more; so no warm-up that ends within this run would have held$/,
    );
  });

  it("also follows LAMB's ratios, and not those that 1-bit LAMB keeps", () => {
    const lines = linesOf({
      variance_norms: names.map(() => still(1)),
      ratios: [() => 0.3, (steps) => Math.min(0.2, steps / 400), () => 0.1, () => 0.1],
    });
    expect(settledLayers(recipeOf("lamb"), lines).map(settledText)).toEqual([
      expect.stringMatching(/^‖v‖ of 4 of 4 layers/),
      "the trust ratio of 3 of 4 layers changed by less than 10% over the last third of the run; still moving: blocks.0.attention_norm.weight (+57%); a warm-up of about 1 step would have held for the others",
    ]);
    expect(settledLayers(recipeOf("one-bit-lamb", "optimizer.warmup=20"), lines)).toHaveLength(1);
  });

  it("is absent where the method's variance stands still by itself, and with fewer than four measures", () => {
    const lines = linesOf({ variance_norms: names.map(() => still(1)) });
    for (const method of ["one-bit-adam", "lamb-basic-one-bit"])
      expect(settledLayers(recipeOf(method, "optimizer.warmup=20"), lines)).toEqual([]);
    expect(settledLayers(recipeOf("lion"), lines)).toEqual([]);
    expect(settledLayers(recipeOf("adamw"), lines.slice(0, 3))).toEqual([]);
  });
});
