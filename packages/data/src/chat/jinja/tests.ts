/** Jinja's tests: what follows `is`, or is named in select, reject, selectattr and rejectattr. */
import type { Value } from "./library.ts";
import { NotKnown } from "./not-known.ts";
import { operate, questions } from "./operators.ts";
import { equal, integer, isList, numberIn, str, typeName } from "./values.ts";

type Test = (value: Value, other: Value) => boolean;

const hasType =
  (...types: readonly string[]): Test =>
  ({ type }) =>
    types.includes(type);
const isNumber = (value: Value) => numberIn(value) !== undefined;
const isText = hasType("StringValue");
const rest = (value: Value, by: Value) => operate("%", value, by);
const isLeft = (value: Value, by: bigint, left: bigint) => equal(rest(value, integer(by)), integer(left));
const named = Object.fromEntries(
  [
    ["==", "eq", "equalto"],
    ["!=", "ne"],
    ["<", "lt", "lessthan"],
    ["<=", "le"],
    [">", "gt", "greaterthan"],
    [">=", "ge"],
    ["in"],
  ].flatMap(([operator, ...names]) => [operator!, ...names].map((name) => [name, questions[operator!]!])),
);

const tests: Readonly<Record<string, Test>> = {
  ...named,
  defined: ({ type }) => type !== "UndefinedValue",
  undefined: hasType("UndefinedValue"),
  none: hasType("NullValue"),
  boolean: hasType("BooleanValue"),
  true: ({ value }) => value === true,
  false: ({ value }) => value === false,
  integer: hasType("IntegerValue"),
  float: hasType("FloatValue"),
  number: isNumber,
  string: isText,
  mapping: hasType("ObjectValue"),
  sequence: (value) =>
    isText(value, value) || hasType("ArrayValue", "TupleValue", "ObjectValue", "UndefinedValue")(value, value),
  iterable: (value) => isText(value, value) || isList(value) || hasType("ObjectValue", "UndefinedValue")(value, value),
  callable: hasType("FunctionValue", "UndefinedValue"),
  odd: (value) => isLeft(value, 2n, 1n),
  even: (value) => isLeft(value, 2n, 0n),
  divisibleby: (value, by) => equal(rest(value, by), integer(0n)),
  sameas: (value, other) => value === other || (value.type === other.type && !isList(value) && equal(value, other)),
  lower: (value) => isCased(str(value), (text) => text.toLowerCase()),
  upper: (value) => isCased(str(value), (text) => text.toUpperCase()),
};

/** str.islower and isupper */
const isCased = (text: string, form: (text: string) => string) => /\p{Cased}/u.test(text) && form(text) === text;

const withOther = [...Object.keys(named), "divisibleby", "sameas"];

/** Throws for a name that is not known, and for arguments that the test has not. */
export function isTrueOf(name: string, value: Value, args: readonly Value[]): boolean {
  if (!Object.hasOwn(tests, name)) throw new NotKnown(`the test '${name}' of Jinja`, name);
  const count = withOther.includes(name) ? 1 : 0;
  if (args.length !== count)
    throw new Error(`the test '${name}' takes ${count} arguments, and ${args.length} are given`);
  if (value.type === "UndefinedValue" && ["odd", "even", "divisibleby"].includes(name))
    throw new Error(`${typeName(value)} has no remainder`);
  return tests[name]!(value, args[0]!);
}
