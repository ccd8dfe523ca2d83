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
  expect(sentText(local("steps=10"), bytesOf([5, 10]), 0)).toBe("1.00 kB in a round, every 5 steps (200 B a step)");
  expect(sentText(local("steps=2"), bytesOf([2, 5]), 0)).toBe("1.00 kB in a round, every 5 steps (500 B a step)");
  expect(sentText(local("steps=2"), bytesOf([2, 5]), 2)).toBe("1.00 kB in a round, every 5 steps (500 B a step)");
  expect(sentText(local("steps=10"), bytesOf([5, 10]), 9)).toBe("1.00 kB in a round, every 5 steps (200 B a step)");
  const everyStep = (step: number) => (step < 8 ? 1000 : 100);
  expect(sentText(local("steps=10", "local.syncEvery=1"), everyStep, 0)).toBe(
    "1.00 kB in a round, every step (1.00 kB a step), and 100 B in the last one",
  );
});

it("says what a rank sends on its host and what in a round, whatever changes in the steps", () => {
  const hosts = (...options: string[]) => readRecipe("gpt-small-local-muon", ["local.within=host", ...options]);
  const warmsUp = (step: number) => (step < 2 ? 574_000 : 18_000);
  const rounds = (step: number) => warmsUp(step) + ((step + 1) % 5 === 0 ? 600_000 : 0);
  expect(sentText(hosts("steps=20"), rounds, 0, warmsUp)).toBe(
    "574.0 kB a step on its host (18.0 kB in the last one), and 600.0 kB in a round, every 5 steps (360.4 kB a step)",
  );
  const turns = (step: number) => warmsUp(step) + [100_000, 300_000][(step + 1) / 5 - 1 === 0 ? 0 : 1]!;
  const inTwo = hosts("steps=20", "local.syncEvery=10", "local.fragments=2");
  const of = (step: number) => ((step + 1) % 5 === 0 ? turns(step) : warmsUp(step));
  expect(sentText({ ...inTwo, steps: 10 }, of, 2, warmsUp)).toBe(
    "18.0 kB a step on its host, and 100.0 kB to 300.0 kB in a round, every 5 steps (58.0 kB a step)",
  );
});
