/** json.dumps of Python, which is transformers' filter tojson. */
import { byCodePoint } from "../../by-code-point.ts";
import type { Value } from "./library.ts";
import { floatText } from "./numbers.ts";
import { byNames, isList, isMap, isSequence, isTrue, type Named, str, typeName } from "./values.ts";

export interface JsonOptions {
  readonly indent?: string | undefined; // of a level; on one line if absent
  readonly ascii?: boolean | undefined; // with \u for all other letters
  readonly separators?: readonly [between: string, behindKey: string] | undefined;
  readonly sorted?: boolean | undefined; // by keys
}

/** The options that arguments of tojson say. */
export function jsonOptions(args: readonly Value[], named: Named): JsonOptions {
  const given = byNames("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"], args, named);
  const { indent, separators } = given;
  return {
    indent:
      typeof indent?.value === "number" ? " ".repeat(indent.value) : ((indent?.value as string | null) ?? undefined),
    ascii: isTrue(given["ensure_ascii"]),
    separators: separators && isList(separators) ? (separators.value.map(str) as [string, string]) : undefined,
    sorted: isTrue(given["sort_keys"]),
  };
}

export function json(value: Value, options: JsonOptions = {}, begin = "\n"): string {
  const { indent, ascii = false, separators = [indent === undefined ? ", " : ",", ": "], sorted = false } = options;
  if (typeof value.value === "string") return quoted(value.value, ascii);
  if (value.type === "NullValue") return "null";
  if (value.type === "IntegerValue" || typeof value.value === "boolean") return String(value.value);
  if (value.type === "FloatValue") {
    const number = value.value as number;
    return Number.isFinite(number) ? floatText(number) : String(number);
  }
  const inside = indent === undefined ? "" : begin + indent;
  const parts = (open: string, all: readonly string[], close: string) =>
    all.length === 0
      ? open + close
      : open + inside + all.join(separators[0] + inside) + (indent === undefined ? "" : begin) + close;
  const inner = (each: Value) => json(each, options, inside);
  if (isSequence(value)) return parts("[", value.value.map(inner), "]");
  if (!isMap(value) || value.type !== "ObjectValue")
    throw new Error(`Object of type ${typeName(value)} is not JSON serializable`);
  const entries = [...value.value];
  if (sorted) entries.sort(([a], [b]) => byCodePoint(a, b));
  return parts(
    "{",
    entries.map(([key, each]) => quoted(key, ascii) + separators[1] + inner(each)),
    "}",
  );
}

function quoted(text: string, ascii: boolean): string {
  const all = JSON.stringify(text);
  if (!ascii) return all;
  return all.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
