/** Texts with places for values: '%s' % x, and '{}'.format(x). */
import type { Value } from "./library.ts";
import { fixed } from "./numbers.ts";
import { isList, isMap, numberIn, repr, str, typeName } from "./values.ts";

const percent = /%(?:\((?<key>[^)]*)\))?(?<flags>[-+ 0]*)(?<width>\d*)(?:\.(?<places>\d+))?(?<kind>.?)/gsu;

/** 'text' % values: a tuple has a value for each place, and a dict has them by their names. */
export function formatted(template: string, values: Value): string {
  const given = values.type === "TupleValue" && isList(values) ? [...values.value] : [values];
  const written = template.replaceAll(percent, (all, ...rest) => {
    const { key, flags = "", width = "", places, kind } = rest.at(-1) as Record<string, string | undefined>;
    if (kind === "%") return "%";
    if (key !== undefined && !isMap(values)) throw new Error("format requires a mapping");
    const value = key === undefined ? given.shift() : (values.value as ReadonlyMap<string, Value>).get(key);
    if (value === undefined)
      throw new Error(key === undefined ? "not enough arguments for format string" : `there is no key '${key}'`);
    const number = kind === "s" || kind === "r" ? undefined : numberIn(value);
    let text: string;
    if (kind === "s" || kind === "r") {
      text = kind === "s" ? str(value) : repr(value);
      if (places !== undefined) text = [...text].slice(0, Number(places)).join("");
    } else if (number === undefined || !["d", "i", "f", "F"].includes(kind ?? ""))
      throw new Error(`${all} of a ${typeName(value)} is not known here`);
    else if (kind === "f" || kind === "F") text = fixed(Number(number), Number(places ?? 6));
    else text = String(typeof number === "bigint" ? number : BigInt(Math.trunc(number)));
    if (number !== undefined && !text.startsWith("-")) text = (/[+]/.exec(flags) ?? / /.exec(flags) ?? [""])[0] + text;
    const missing = Math.max(0, Number(width) - [...text].length);
    if (flags.includes("-")) return text + " ".repeat(missing);
    if (!flags.includes("0") || number === undefined) return " ".repeat(missing) + text;
    return text.replace(/^[-+ ]?/, (sign) => sign + "0".repeat(missing));
  });
  if (given.length > 0 && !percentNames(template) && !isMap(values))
    throw new Error("not all arguments converted during string formatting");
  return written;
}

const percentNames = (template: string) => /%\(/.test(template);

/** 'text'.format(…): {}, {0} and {name}. */
export function braced(template: string, args: readonly Value[], named: ReadonlyMap<string, Value>): string {
  let next = 0;
  return template.replaceAll(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (all, field?: string) => {
    if (all === "{{" || all === "}}") return all[0]!;
    if (field === undefined) throw new Error(`a single ${all} in a format string`);
    if (!/^\w*$/.test(field))
      throw new Error(`'${all}'.format is not known here: a field has a number, a name, or nothing`);
    const value = field === "" ? args[next++] : /^\d+$/.test(field) ? args[Number(field)] : named.get(field);
    if (value === undefined) throw new Error(`format has no argument for ${all}`);
    return str(value);
  });
}
