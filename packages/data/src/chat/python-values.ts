/** Values of Hugging Face's Jinja as Python writes and compares them. */
import type { Value } from "./jinja.ts";

/** A list or tuple. */
export const isList = (value: Value): value is Value & { value: readonly Value[] } => Array.isArray(value.value);
const isMap = (value: Value): value is Value & { value: ReadonlyMap<string, Value> } => value.value instanceof Map;

/** As str() writes it; what is undefined writes nothing, as in Jinja. */
export function str(value: Value): string {
  return typeof value.value === "string" ? value.value : value.type === "UndefinedValue" ? "" : repr(value);
}

/** As repr() writes it. */
function repr(value: Value): string {
  if (typeof value.value === "string") return quoted(value.value);
  if (value.type === "NullValue") return "None";
  if (typeof value.value === "boolean") return value.value ? "True" : "False";
  if (isMap(value)) return `{${[...value.value].map(([key, each]) => `${quoted(key)}: ${repr(each)}`).join(", ")}}`;
  if (!isList(value)) return value.toString();
  const items = value.value.map(repr).join(", ");
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
    return a.value.length === b.value.length && a.value.every((x, i) => equal(x, b.value[i]!));
  if (isMap(a) && isMap(b))
    return (
      a.value.size === b.value.size && [...a.value].every(([key, x]) => b.value.has(key) && equal(x, b.value.get(key)!))
    );
  const isNothing = ({ type }: Value) => type === "NullValue" || type === "UndefinedValue";
  if (isNothing(a) || isNothing(b)) return a.type === b.type;
  const number = (value: Value) => (typeof value.value === "boolean" ? Number(value.value) : value.value);
  return number(a) === number(b) && typeof number(a) === typeof number(b);
}

const names: Readonly<Record<string, string>> = {
  ...{ NullValue: "NoneType", BooleanValue: "bool", IntegerValue: "int", FloatValue: "float" },
  ...{ ArrayValue: "list", TupleValue: "tuple", ObjectValue: "dict" },
};

/** The name of its type. */
export const typeName = ({ type }: Value): string => names[type] ?? type;
