import { expect, it } from "vitest";
import { signAt } from "./policies.ts";

it("alternates by step, plus first, and leaves fixed policies fixed", () => {
  expect([0, 1, 2, 3, 10, 11].map((step) => signAt("alternate", step))).toEqual([
    "plus",
    "minus",
    "plus",
    "minus",
    "plus",
    "minus",
  ]);
  expect([0, 1].map((step) => signAt("plus", step))).toEqual(["plus", "plus"]);
  expect([0, 1].map((step) => signAt("minus", step))).toEqual(["minus", "minus"]);
});

it("refuses another policy, and a step that is none", () => {
  expect(() => signAt("hold" as "plus", 1)).toThrow('policy is hold, and must be "plus", "minus" or "alternate"');
  for (const step of [0.5, Number.NaN, undefined as never])
    expect(() => signAt("alternate", step)).toThrow(`step is ${step}, and must be a whole number`);
});
