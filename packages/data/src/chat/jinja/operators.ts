/** Operators of two values, as Python has them. */

import { byCodePoint } from "../../by-code-point.ts";
import { formatted } from "./format.ts";
import type { Value } from "./library.ts";
import { ofFloats, ofIntegers } from "./numbers.ts";
import {
  equal,
  float,
  integer,
  isList,
  isMap,
  itemsOf,
  list,
  numberIn,
  str,
  text,
  truth,
  tuple,
  typeName,
} from "./values.ts";

export function operate(operator: string, left: Value, right: Value): Value {
  const numbers = ofNumbers(operator, left, right);
  if (numbers) return numbers;
  const ask = questions[operator];
  if (ask) return truth(ask(left, right));
  if (operator === "~") return text(str(left) + str(right));
  for (const value of [left, right])
    if (value.type === "UndefinedValue") throw new Error(`${operator} has an operand that is undefined`);
  const known = operators[operator]?.(left, right) ?? operators[operator]?.(right, left, true);
  if (known) return known;
  if (operator === "+" && typeof left.value === "string")
    throw new Error(`can only concatenate str (not "${typeName(right)}") to str`);
  throw new Error(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

/** What an operator makes of two numbers; undefined where they are none, or it is no operator of theirs. */
function ofNumbers(operator: string, left: Value, right: Value): Value | undefined {
  const [a, b] = [numberIn(left), numberIn(right)];
  if (a === undefined || b === undefined || !Object.hasOwn(ofFloats, operator)) return undefined;
  const dividesByZero = Number(b) === 0 && ["/", "//", "%"].includes(operator);
  if (dividesByZero || (operator === "**" && Number(a) === 0 && b < 0)) throw new Error("division by zero");
  const whole = operator === "**" && b < 0 ? undefined : ofIntegers[operator];
  if (whole && left.type !== "FloatValue" && right.type !== "FloatValue") return integer(whole(BigInt(a), BigInt(b)));
  const result = ofFloats[operator]!(Number(a), Number(b));
  if (Number.isNaN(result) && operator === "**") throw new Error("a root of a negative number is a complex number");
  return float(result);
}

/** The order of two values: negative where the first one is less. Throws where they have none. */
export function order(a: Value, b: Value, operator = "<"): number {
  const [x, y] = [numberIn(a), numberIn(b)];
  if (x !== undefined && y !== undefined) return x < y ? -1 : x > y ? 1 : 0;
  if (typeof a.value === "string" && typeof b.value === "string") return byCodePoint(a.value, b.value);
  if (!isList(a) || !isList(b) || a.type !== b.type)
    throw new Error(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
  const at = a.value.findIndex((each, i) => b.value[i] === undefined || !equal(each, b.value[i]));
  return at < 0 || at >= b.value.length ? a.value.length - b.value.length : order(a.value[at]!, b.value[at]!, operator);
}

/** Whether a value is one of the items of another one, or a text a part of another one. */
export function isIn(value: Value, all: Value): boolean {
  if (typeof all.value !== "string")
    return isMap(all) && all.type === "ObjectValue"
      ? typeof value.value === "string" && all.value.has(value.value)
      : itemsOf(all).some((each) => equal(each, value));
  if (typeof value.value === "string") return all.value.includes(value.value);
  throw new Error(`'in <string>' requires string as left operand, not ${typeName(value)}`);
}

/** Operators whose result is true or false. */
export const questions: Readonly<Record<string, (a: Value, b: Value) => boolean>> = {
  "==": equal,
  "!=": (a, b) => !equal(a, b),
  "<": (a, b) => order(a, b, "<") < 0,
  "<=": (a, b) => order(a, b, "<=") <= 0,
  ">": (a, b) => order(a, b, ">") > 0,
  ">=": (a, b) => order(a, b, ">=") >= 0,
  in: isIn,
  "not in": (a, b) => !isIn(a, b),
};

const entities: Readonly<Record<string, string>> = {
  ...{ "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" },
};
const isSafe = (value: Value) => "isSafe" in value;

/** A text that is markup: what is added to it is escaped. */
export const safe = (markup: string): Value => Object.assign(text(markup), { isSafe: true });
export const escaped = (value: Value): Value =>
  isSafe(value) ? value : safe(str(value).replaceAll(/[&<>'"]/g, (letter) => entities[letter]!));

/** Operators of texts and lists; undefined where they have none. */
const operators: Readonly<Record<string, (a: Value, b: Value, isTurned?: boolean) => Value | undefined>> = {
  "+": (a, b, isTurned) => {
    if (isTurned) return undefined;
    if (typeof a.value === "string" && typeof b.value === "string")
      return isSafe(a) || isSafe(b) ? safe(str(escaped(a)) + str(escaped(b))) : text(a.value + b.value);
    if (!isList(a) || !isList(b) || a.type !== b.type) return undefined;
    return a.type === "TupleValue" ? tuple([...a.value, ...b.value]) : list([...a.value, ...b.value]);
  },
  "*": (a, b) => {
    const times = b.type === "IntegerValue" || b.type === "BooleanValue" ? Math.max(0, Number(b.value)) : undefined;
    if (times === undefined) return undefined;
    if (typeof a.value === "string") return text(a.value.repeat(times));
    const items = isList(a) ? Array.from({ length: times }, () => a.value).flat() : undefined;
    return items && (a.type === "TupleValue" ? tuple(items) : list(items));
  },
  "%": (a, b, isTurned) => (isTurned || typeof a.value !== "string" ? undefined : text(formatted(a.value, b))),
};
