import { expect, it } from "vitest";
import { choose } from "./choose.ts";
import { OptionsError } from "./options-error.ts";

const entries = { adamw: 1, lion: 2, "lion-cub": 3 };

it("returns the entry of that name", () => expect(choose("optimizer", "lion-cub", entries)).toBe(3));

it.each([
  ["lion-cup", 'optimizer: unknown name "lion-cup"; did you mean lion-cub? (known: adamw, lion, lion-cub)'],
  ["lionCub", 'optimizer: unknown name "lionCub"; did you mean lion-cub? (known: adamw, lion, lion-cub)'],
  ["sgd", 'optimizer: unknown name "sgd" (known: adamw, lion, lion-cub)'],
  ["constructor", 'optimizer: unknown name "constructor" (known: adamw, lion, lion-cub)'],
  ["", 'optimizer: unknown name "" (known: adamw, lion, lion-cub)'],
])("refuses %j with the nearest name and the list", (name, message) => {
  expect(() => choose("optimizer", name, entries)).toThrow(new OptionsError([message]));
});
