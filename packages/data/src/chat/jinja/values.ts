/** Values of Hugging Face's Jinja as Python writes and compares them. */
import { Environment, Interpreter, type Node, type Value } from "./library.ts";
import { floatText } from "./numbers.ts";

const bare = new Interpreter(new Environment());
const made = (type: string, value: unknown): Value => bare.evaluate({ type, value } as Node, bare.global);
const holding = (type: string, value: unknown): Value =>
  Object.assign(made(type, type === "ObjectLiteral" ? new Map() : []), { value });

export const text = (value: string): Value => made("StringLiteral", value);
export const float = (value: number): Value => made("FloatLiteral", value);
/** An int: a number where one holds it, else a bigint, which the library takes along. */
export const integer = (value: bigint): Value =>
  made("IntegerLiteral", BigInt.asIntN(54, value) === value ? Number(value) : value);
export const list = (items: readonly Value[]): Value => holding("ArrayLiteral", items);
export const tuple = (items: readonly Value[]): Value => holding("TupleLiteral", items);
/** What a function of Python gives that is asked for one item after the other: it is empty afterwards, and always true. */
export const lazy = (items: readonly Value[]): Value =>
  Object.assign(list([...items]), { type: "GeneratorValue", __bool__: () => truth(true) });
/** What a dict has, seen as a list: its items, keys or values. */
export const view = (type: "dict_items" | "dict_keys" | "dict_values", items: readonly Value[]): Value =>
  Object.assign(list(items), { type });
/** Arguments by name. */
export type Named = ReadonlyMap<string, Value>;
export type Callable = (args: readonly Value[], named: Named) => Value;
/** A function. The library gives the named arguments as the last one. */
export const callable = (call: Callable): Value =>
  Object.assign(
    new Environment().set("value", () => null),
    {
      value(args: readonly Value[]) {
        const last = args.at(-1);
        const named = last?.type === "KeywordArgumentsValue" ? (last.value as Map<string, Value>) : undefined;
        return call(named ? args.slice(0, -1) : args, named ?? new Map());
      },
    },
  );
export const dict = (entries: Iterable<readonly [string, Value]>): Value => holding("ObjectLiteral", new Map(entries));
export const [none, nothing] = [null, undefined].map((value) => new Environment().set("value", value)) as [
  Value,
  Value,
];
const truths = { true: new Environment().set("value", true), false: new Environment().set("value", false) };
export const truth = (value: boolean): Value => truths[`${value}`];

/** A value of a row: an integer is a bigint there, and a number is a float (read-json.ts). */
export function valueInRow(value: unknown): Value {
  if (typeof value === "string") return text(value);
  if (typeof value === "bigint") return integer(value);
  if (typeof value === "number") return float(value);
  if (typeof value === "boolean") return truth(value);
  if (Array.isArray(value)) return list(value.map(valueInRow));
  if (value === null || value === undefined) return value === null ? none : nothing;
  const entries: Iterable<[string, unknown]> = value instanceof Map ? value : Object.entries(value);
  return dict([...entries].map(([key, each]) => [key, valueInRow(each)]));
}

/** The number of an int, a float or a truth value; undefined for others. */
export function numberIn({ value }: Value): number | bigint | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

/** Whether it is true in an {% if %}; what is not given is not. */
export const isTrue = (value: Value | undefined): boolean => value?.__bool__().value ?? false;

/** A list or tuple, or what is asked for like one: a generator, or a view of a dict. */
export const isList = (value: Value): value is Value & { value: readonly Value[] } => Array.isArray(value.value);
/** A list or tuple, whose items have places. */
export const isSequence = (value: Value): value is Value & { value: readonly Value[] } =>
  isList(value) && (value.type === "ArrayValue" || value.type === "TupleValue");
export const isMap = (value: Value): value is Value & { value: ReadonlyMap<string, Value> } =>
  value.value instanceof Map;

/** As str() writes it; what is undefined writes nothing, as in Jinja. */
export function str(value: Value): string {
  return typeof value.value === "string" ? value.value : value.type === "UndefinedValue" ? "" : repr(value);
}

/** As repr() writes it. */
export function repr(value: Value): string {
  if (typeof value.value === "string") return quoted(value.value);
  if (value.type === "NullValue") return "None";
  if (typeof value.value === "boolean") return value.value ? "True" : "False";
  if (value.type === "FloatValue") return floatText(value.value as number);
  if (isMap(value) && value.type === "NamespaceValue") return `<Namespace ${repr(dict(value.value))}>`;
  if (isMap(value)) return `{${[...value.value].map(([key, each]) => `${quoted(key)}: ${repr(each)}`).join(", ")}}`;
  if (typeof value.value === "number" || typeof value.value === "bigint") return String(value.value);
  if (!isList(value) || value.type === "GeneratorValue") throw new Error(`a ${typeName(value)} is no text`);
  const items = value.value.map(repr).join(", ");
  if (value.type.startsWith("dict_")) return `${value.type}([${items}])`;
  return value.type !== "TupleValue" ? `[${items}]` : `(${items}${value.value.length === 1 ? "," : ""})`;
}

const named: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll(/[\\\p{C}\p{Z}']/gu, (letter) => {
    if (letter === " " || (letter === "'" && quote === '"')) return letter;
    if (letter === "'") return "\\'";
    if (named[letter]) return named[letter];
    const code = letter.codePointAt(0)!;
    const [mark, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${mark}${code.toString(16).padStart(digits as number, "0")}`;
  });
  return quote + escaped + quote;
}

/** As == compares: numbers with numbers and truth values, all else with its own kind. */
export function equal(a: Value, b: Value): boolean {
  if (isList(a) && isList(b))
    return (
      (a.type === "TupleValue") === (b.type === "TupleValue") &&
      a.value.length === b.value.length &&
      a.value.every((x, i) => equal(x, b.value[i]!))
    );
  if (isMap(a) && isMap(b))
    return (
      a.value.size === b.value.size && [...a.value].every(([key, x]) => b.value.has(key) && equal(x, b.value.get(key)!))
    );
  const isNothing = ({ type }: Value) => type === "NullValue" || type === "UndefinedValue";
  if (isNothing(a) || isNothing(b)) return a.type === b.type;
  const [x, y] = [numberIn(a), numberIn(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals a number of its value
  return x === undefined || y === undefined ? a.value === b.value : x == y;
}

/** The items of what a loop goes over: letters of a text, keys of a dict, and none where there is nothing. */
export function itemsOf(value: Value): readonly Value[] {
  if (value.type === "GeneratorValue") return (value.value as Value[]).splice(0);
  if (isList(value)) return value.value;
  if (typeof value.value === "string") return [...value.value].map(text);
  if (isMap(value) && value.type === "ObjectValue") return [...value.value.keys()].map(text);
  if (value.type === "UndefinedValue") return [];
  throw new Error(`'${typeName(value)}' object is not iterable`);
}

/** How many items a value has. */
export function lengthOf(value: Value): number {
  if (value.type === "GeneratorValue") throw new Error("object of type 'generator' has no len()");
  return isMap(value) && value.type === "ObjectValue" ? value.value.size : itemsOf(value).length;
}

const names: Readonly<Record<string, string>> = {
  ...{ NullValue: "NoneType", BooleanValue: "bool", IntegerValue: "int", FloatValue: "float" },
  ...{ StringValue: "str", UndefinedValue: "Undefined", FunctionValue: "function", GeneratorValue: "generator" },
  ...{ ArrayValue: "list", TupleValue: "tuple", ObjectValue: "dict", NamespaceValue: "Namespace" },
};

/** The name of its type. */
export const typeName = ({ type }: Value): string => names[type] ?? type;

/** Arguments by the names of the parameters. */
export type Given = Readonly<Record<string, Value | undefined>>;

/** Arguments of a function of Python by the names of its parameters. Throws for one that has none. */
export function byNames(name: string, parameters: readonly string[], args: readonly Value[], named: Named): Given {
  if (args.length > parameters.length)
    throw new Error(`${name} takes at most ${parameters.length} arguments, and ${args.length} are given`);
  for (const key of named.keys())
    if (!parameters.slice(args.length).includes(key)) throw new Error(`${name} has no argument ${key}`);
  return Object.fromEntries([...args.map((value, i) => [parameters[i], value]), ...named]);
}
