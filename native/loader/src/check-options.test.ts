import { expect, it } from "vitest";
import { checkOptions } from "./index.ts";

const check = (given: unknown) => () => checkOptions("sum", given, ["keepDim", "dim"]);

it.each<[unknown, string]>([
  [{ keepdim: true }, "sum: there is no option keepdim; did you mean keepDim? (known: keepDim, dim)"],
  [{ keep_dim: true }, "sum: there is no option keep_dim; did you mean keepDim? (known: keepDim, dim)"],
  [{ dim: 0, axis: 0 }, "sum: there is no option axis (known: keepDim, dim)"],
  [true, "sum: options are an object, as in { keepDim: … }, and this is true"],
  ["f32", 'sum: options are an object, as in { keepDim: … }, and this is "f32"'],
  [null, "sum: options are an object, as in { keepDim: … }, and this is null"],
  [[1], "sum: options are an object, as in { keepDim: … }, and this is an array"],
])("refuses %j as options", (given, message) => {
  expect(check(given)).toThrow(new TypeError(message));
});

it("takes known options, none, and others without a value", () => {
  for (const given of [undefined, {}, { keepDim: true }, { axis: undefined }]) expect(check(given)).not.toThrow();
});
