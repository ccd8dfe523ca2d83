import { readRecipe } from "@terse/train/recipe";
import { expect, it } from "vitest";
import { recipe } from "./convergence.ts";
import { type Method, methods, settingsOwner } from "./methods.ts";

const read = ({ changes, timed = [] }: Method) => readRecipe(recipe, [...changes, ...timed]);

it.each(Object.entries(methods))("%s is a recipe, also while its steps are timed", (_, method) => {
  expect(() => read(method)).not.toThrow();
  expect(() => read({ ...method, timed: [] })).not.toThrow();
});

it("take the settings of a method that searches its own and comes before them", () => {
  const names = Object.keys(methods);
  for (const name of names) {
    expect(methods[settingsOwner(name)]!.lr).toBeTypeOf("number");
    expect(names.indexOf(settingsOwner(name))).toBeLessThanOrEqual(names.indexOf(name));
  }
});
