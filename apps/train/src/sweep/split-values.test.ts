import { expect, it } from "vitest";
import { splitValues } from "./split-values.ts";

it.each([
  ["1e-3,2e-3", ["1e-3", "2e-3"]],
  ["lion", ["lion"]],
  [" a , b ", ["a", "b"]],
  ["[0.9, 0.99],[0.95, 0.99]", ["[0.9, 0.99]", "[0.95, 0.99]"]],
  ['{ a: [1, 2], b: "x, }" },null', ['{ a: [1, 2], b: "x, }" }', "null"]],
  ['"a,b",c', ['"a,b"', "c"]],
  ["'a,b'", ["'a,b'"]],
  ["it's,5[x", ["it's", "5[x"]],
  ["[1, 2", ["[1, 2"]], // the reader of YAML says that it is not closed
])("splits %j into %j", (text, values) => expect(splitValues("x", text)).toEqual(values));

it.each([",", "a,", ",a", "a,,b", " "])("refuses %j, in which a value is missing", (text) => {
  expect(() => splitValues("optimizer.lr", text)).toThrow(/^--optimizer\.lr: no value before or after a comma/);
});
