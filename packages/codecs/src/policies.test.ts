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
