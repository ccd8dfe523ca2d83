import { expect, it } from "vitest";
import { readRecipe } from "./recipe.ts";
import { stepsBetweenRounds } from "./steps-between-rounds.ts";

const recipe = (...local: string[]) =>
  readRecipe("gpt-small-adamw", ["steps=40", ...local.map((each) => `local.${each}`)]);
const around = (before: string[], after: string[], step: number) =>
  stepsBetweenRounds(recipe(...before), recipe(...after), step);

it("counts the steps since the round before a save, and those to the next round as the run goes on", () => {
  expect(around(["syncEvery=10"], ["syncEvery=10"], 9)).toEqual({ sinceRound: 9, toNext: 10 });
  expect(around(["syncEvery=10"], ["syncEvery=7"], 9)).toEqual({ sinceRound: 9, toNext: 14 });
  expect(around(["syncEvery=10"], ["syncEvery=5"], 10)).toEqual({ sinceRound: 0, toNext: 5 });
  const ended = recipe("syncEvery=30");
  expect(stepsBetweenRounds(ended, { ...ended, steps: 60 }, 40)).toEqual({ sinceRound: 0, toNext: 20 });
});

it("looks at the fragment whose round is longest ago", () => {
  const two = (syncEvery: number) => [`syncEvery=${syncEvery}`, "fragments=2"];
  expect(around(two(10), two(10), 10)).toEqual({ sinceRound: 5, toNext: 10 });
  expect(around(two(10), two(20), 9)).toEqual({ sinceRound: 9, toNext: 20 });
});

it("says nothing where there are no rounds before or after", () => {
  expect(around([], ["syncEvery=10"], 9)).toBeUndefined();
  expect(around(["syncEvery=10"], [], 9)).toBeUndefined();
  expect(around(["syncEvery=10"], ["syncEvery=10", "fragments=2"], 9)).toBeUndefined();
});
