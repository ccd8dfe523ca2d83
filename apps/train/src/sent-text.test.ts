import { expect, it } from "vitest";
import { readRecipe } from "./recipe.ts";
import { sentText } from "./sent-text.ts";

const recipe = (...options: string[]) =>
  readRecipe("gpt-small", ["steps=5000", "optimizer.name=lion-cub", ...options.map((each) => `optimizer.${each}`)]);

it("says what a rank sends in a step, in the last one, and where steps take turns", () => {
  expect(sentText(recipe(), () => 2000, 0)).toBe("2.00 kB a step");
  const warmsUp = (step: number) => (step < 1000 ? 64_000 : 2000);
  expect(sentText(recipe(), warmsUp, 0)).toBe("64.0 kB a step, and 2.00 kB in the last one");
  expect(sentText(recipe(), warmsUp, 1000)).toBe("2.00 kB a step");
  const averages = (step: number) => ((step + 1) % 1500 === 0 ? 64_000 : 2000);
  expect(sentText(recipe("momentumSync={ segments: all, every: 1500 }"), averages, 0)).toBe(
    "2.00 kB to 64.0 kB a step, and 2.00 kB in the last one",
  );
  expect(sentText({ ...recipe("momentumSync={ segments: all, every: 1500 }"), steps: 1e6 }, averages, 9e5)).toBe(
    "2.00 kB to 64.0 kB a step, and 2.00 kB in the last one",
  );
  expect(sentText(recipe(), warmsUp, 5000)).toBe("2.00 kB a step"); // no step is left
});

it("says what a round sends, also the one that ends a short run", () => {
  const bytesOf = (ends: readonly number[]) => (step: number) => (ends.includes(step + 1) ? 1000 : 0);
  const local = (...options: string[]) => readRecipe("gpt-small-local-muon", options);
  expect(sentText(local(), bytesOf([5, 10]), 0)).toBe("1.00 kB in a round, every 5 steps (200 B a step)");
  expect(sentText(local("steps=2"), bytesOf([2, 5]), 0)).toBe("1.00 kB in a round, every 5 steps (500 B a step)");
});
