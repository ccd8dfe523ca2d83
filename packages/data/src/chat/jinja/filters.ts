/** Jinja's filters, and tojson of transformers. */

import { formatted } from "./format.ts";
import { json, jsonOptions } from "./json.ts";
import type { Value } from "./library.ts";
import { methodOf } from "./methods.ts";
import { NotKnown } from "./not-known.ts";
import { fixed } from "./numbers.ts";
import { escaped, operate, order, safe } from "./operators.ts";
import { capitalize, lines, pad } from "./strings.ts";
import { isTrueOf } from "./tests.ts";
import {
  byNames,
  dict,
  equal,
  float,
  type Given,
  integer,
  isList,
  isMap,
  isTrue,
  itemsOf,
  lazy,
  lengthOf,
  list,
  type Named,
  nothing,
  numberIn,
  str,
  text,
  tuple,
  typeName,
} from "./values.ts";

type Filter = (value: Value, args: readonly Value[], named: Named) => Value;

/** A filter with the names of its parameters. */
const taking =
  (parameters: readonly string[], filter: (value: Value, given: Given) => Value): Filter =>
  (value, args, named) =>
    filter(value, byNames("the filter", parameters, args, named));
const count = (value: number) => integer(BigInt(value));
const numberOr = (value: Value | undefined, other: number) => {
  const number = value && numberIn(value);
  return number === undefined ? other : Number(number);
};
const wordOr = (value: Value | undefined, other: string) => (value === undefined ? other : str(value));
/** A filter that makes a text of a text, or of what is written as one. */
const ofText = (make: (text: string) => string): Filter => taking([], (value) => text(make(str(value))));

/** What an object has by the name of an attribute, such as function.name or 0. */
function attribute(value: Value, path: Value, other?: Value): Value {
  let found = value;
  for (const part of str(path).split(".")) {
    if (found.type === "UndefinedValue") throw new Error(`what '${str(path)}' is asked of is undefined`);
    const at = /^\d+$/.test(part) ? Number(part) : undefined;
    const next = isMap(found)
      ? found.value.get(part)
      : at !== undefined && (isList(found) || typeof found.value === "string")
        ? itemsOf(found)[at]
        : undefined;
    found = next ?? other ?? nothing;
  }
  return found;
}

/** By what values are sorted and told apart: an attribute of them, and texts without their case. */
function keyOf(by: Value | undefined, isExact: boolean): (value: Value) => Value {
  const plain = (value: Value) =>
    isExact || typeof value.value !== "string" ? value : text(value.value.toLowerCase());
  return (value) => plain(by === undefined || by.type === "NullValue" ? value : attribute(value, by));
}
const sorted = (items: readonly Value[], key: (value: Value) => Value, isReversed: boolean) => {
  const keyed = items.map((value) => ({ value, key: key(value) }));
  keyed.sort((a, b) => (isReversed ? order(b.key, a.key) : order(a.key, b.key)));
  return keyed.map(({ value }) => value);
};
const extreme = (sign: 1 | -1): Filter =>
  taking(["case_sensitive", "attribute"], (value, given) => {
    const key = keyOf(given["attribute"], isTrue(given["case_sensitive"]));
    const items = itemsOf(value);
    if (items.length === 0) return nothing;
    return items.reduce((best, each) => (sign * order(key(each), key(best)) < 0 ? each : best));
  });

/** As map and select ask for items: what is not true, such as none, has no items. */
const itemsIfTrue = (value: Value) => (isTrue(value) ? itemsOf(value) : []);

/** select, reject, selectattr and rejectattr. */
const selecting =
  (wanted: boolean, isOfAttribute: boolean): Filter =>
  (value, args) => {
    const [path, name] = isOfAttribute ? args : [undefined, ...args];
    const others = args.slice(isOfAttribute ? 2 : 1);
    if (isOfAttribute && path === undefined) throw new Error("selectattr and rejectattr need the name of an attribute");
    const items = itemsIfTrue(value).filter((each) => {
      const asked = path === undefined ? each : attribute(each, path);
      return (name === undefined ? isTrue(asked) : isTrueOf(str(name), asked, others)) === wanted;
    });
    return lazy(items);
  };

/** Lists of so many items, each begun where the one before has exactly so many: with a size of 0 only the first. */
function inRows(items: readonly Value[], size: number, filler: Value | undefined): Value[] {
  const rows: Value[][] = [];
  let row: Value[] = [];
  for (const item of items) {
    if (row.length === size) {
      rows.push(row);
      row = [];
    }
    row.push(item);
  }
  if (row.length > 0) rows.push(row);
  if (filler !== undefined && filler.type !== "NullValue") while (row.length > 0 && row.length < size) row.push(filler);
  return rows.map(list);
}

function parsedInteger(value: Value, other: Value): Value {
  if (typeof value.value === "string") {
    const trimmed = value.value.trim();
    if (/^[+-]?\d+(_\d+)*$/.test(trimmed)) return integer(BigInt(trimmed.replaceAll("_", "").replace(/^\+/, "")));
  } else if (value.type === "IntegerValue") return value;
  const number = parsedFloat(value);
  return number === undefined || !Number.isFinite(number) ? other : integer(BigInt(Math.trunc(number)));
}

/** float() of Python; undefined where it raises. */
function parsedFloat(value: Value): number | undefined {
  const number = numberIn(value);
  if (number !== undefined) return Number(number);
  if (typeof value.value !== "string") return undefined;
  const trimmed = value.value.trim().replaceAll(/(?<=\d)_(?=\d)/g, "");
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(trimmed);
  if (special) return /nan/i.test(trimmed) ? Number.NaN : Number(`${special[1]}Infinity`);
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : undefined;
}

function rounded(value: Value, { precision, method }: Given): Value {
  const places = numberOr(precision, 0);
  const how = wordOr(method, "common");
  const number = numberIn(value);
  if (number === undefined) throw new Error(`round is of a number, not of a ${typeName(value)}`);
  if (places < 0) throw new Error("round with a negative precision is not known here");
  if (how === "common") return value.type === "FloatValue" ? float(Number(fixed(Number(number), places))) : value;
  const power = 10 ** places;
  return float((how === "ceil" ? Math.ceil : Math.floor)(Number(number) * power) / power);
}

function indented(whole: string, { width, first, blank }: Given): string {
  const before = typeof width?.value === "string" ? width.value : " ".repeat(numberOr(width, 4));
  const all = lines(`${whole}\n`).map((line, i) => (i === 0 || (line === "" && !isTrue(blank)) ? line : before + line));
  return (isTrue(first) ? before : "") + all.join("\n");
}

function truncated(whole: string, { length, killwords, end, leeway }: Given): string {
  const [letters, most, behind] = [[...whole], numberOr(length, 255), wordOr(end, "...")];
  if (letters.length <= most + numberOr(leeway, 5)) return whole;
  const kept = letters.slice(0, most - [...behind].length).join("");
  const space = kept.lastIndexOf(" ");
  return (isTrue(killwords) || space < 0 ? kept : kept.slice(0, space)) + behind;
}

/** Jinja's own title: a word begins behind a blank, a hyphen, or a bracket that opens. */
const title = (whole: string) =>
  whole
    .split(/([-\s({[<]+)/)
    .map((part) => {
      const [first = "", ...others] = part;
      return first.toUpperCase() + others.join("").toLowerCase();
    })
    .join("");

/** A group of groupby: a tuple whose parts have names. */
const group = (grouper: Value, items: readonly Value[]): Value =>
  Object.assign(tuple([grouper, list(items)]), {
    members: new Map([
      ["grouper", grouper],
      ["list", list(items)],
    ]),
  });

const filters: Readonly<Record<string, Filter>> = {
  tojson: (value, args, named) => text(json(value, jsonOptions(args, named))),
  string: ofText((whole) => whole),
  upper: ofText((whole) => whole.toUpperCase()),
  lower: ofText((whole) => whole.toLowerCase()),
  capitalize: ofText(capitalize),
  title: ofText(title),
  trim: taking(["chars"], (value, { chars }) => methodOf(text(str(value)), "strip")!(chars ? [chars] : [], new Map())),
  replace: taking(["old", "new", "count"], (value, { old, new: by, count }) =>
    methodOf(text(str(value)), "replace")!(
      [...[old, by].map((each) => text(str(each!))), ...(count ? [count] : [])],
      new Map(),
    ),
  ),
  indent: taking(["width", "first", "blank"], (value, given) => text(indented(str(value), given))),
  center: taking(["width"], (value, { width }) => text(pad(str(value), "center", numberOr(width, 80)))),
  truncate: taking(["length", "killwords", "end", "leeway"], (value, given) => text(truncated(str(value), given))),
  wordcount: taking([], (value) => count(str(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)),
  escape: taking([], escaped),
  safe: taking([], (value) => safe(str(value))),
  urlencode: ofText((whole) =>
    encodeURIComponent(whole)
      .replaceAll("%2F", "/")
      .replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`),
  ),
  format: (value, args, named) => text(formatted(str(value), named.size > 0 ? dict(named) : tuple(args))),
  int: taking(["default", "base"], (value, { default: other, base }) => {
    if (base !== undefined) throw new Error("int with a base is not known here");
    return parsedInteger(value, other ?? integer(0n));
  }),
  float: taking(["default"], (value, { default: other }) => {
    const number = parsedFloat(value);
    return number === undefined ? (other ?? float(0)) : float(number);
  }),
  abs: taking([], (value) =>
    numberOr(value, 0) < 0 ? operate("*", value, integer(-1n)) : operate("+", value, integer(0n)),
  ),
  round: taking(["precision", "method"], rounded),
  default: taking(["default_value", "boolean"], (value, { default_value: other, boolean }) =>
    value.type === "UndefinedValue" || (isTrue(boolean) && !isTrue(value)) ? (other ?? text("")) : value,
  ),
  length: taking([], (value) => count(lengthOf(value))),
  list: taking([], (value) => list([...itemsOf(value)])),
  first: taking(
    [],
    (value) => (value.type === "GeneratorValue" ? (value.value as Value[]).shift() : itemsOf(value)[0]) ?? nothing,
  ),
  last: taking([], (value) => {
    if (value.type === "GeneratorValue") throw new Error("'generator' object is not reversible");
    return itemsOf(value).at(-1) ?? nothing;
  }),
  reverse: taking([], (value) =>
    typeof value.value === "string" ? text([...value.value].reverse().join("")) : lazy([...itemsOf(value)].reverse()),
  ),
  join: taking(["d", "attribute"], (value, { d, attribute: by }) =>
    text(
      itemsOf(value)
        .map((each) => str(by === undefined ? each : attribute(each, by)))
        .join(wordOr(d, "")),
    ),
  ),
  items: taking([], (value) => {
    if (value.type === "UndefinedValue") return lazy([]);
    if (value.type !== "ObjectValue") throw new Error("Can only get item pairs from a mapping.");
    return lazy(itemsOf(methodOf(value, "items")!([], new Map())));
  }),
  dictsort: taking(["case_sensitive", "by", "reverse"], (value, given) => {
    const { case_sensitive: exact, by, reverse } = given;
    if (value.type !== "ObjectValue") throw new Error(`dictsort is of a dict, not of a ${typeName(value)}`);
    const pairs = itemsOf(methodOf(value, "items")!([], new Map()));
    return list(sorted(pairs, keyOf(count(wordOr(by, "key") === "value" ? 1 : 0), isTrue(exact)), isTrue(reverse)));
  }),
  sort: taking(["reverse", "case_sensitive", "attribute"], (value, given) => {
    const { reverse, case_sensitive: exact, attribute: by } = given;
    const paths = typeof by?.value === "string" ? by.value.split(",").map(text) : [by];
    const key = (each: Value) => list(paths.map((path) => keyOf(path, isTrue(exact))(each)));
    return list(sorted(itemsOf(value), key, isTrue(reverse)));
  }),
  unique: taking(["case_sensitive", "attribute"], (value, given) => {
    const key = keyOf(given["attribute"], isTrue(given["case_sensitive"]));
    const seen: Value[] = [];
    const isNew = (each: Value) => !seen.some((other) => equal(other, key(each))) && seen.push(key(each)) > 0;
    return lazy(itemsOf(value).filter(isNew));
  }),
  groupby: taking(["attribute", "default", "case_sensitive"], (value, given) => {
    const { attribute: by, default: other, case_sensitive: exact } = given;
    if (by === undefined) throw new Error("groupby needs the name of an attribute");
    const raw = (each: Value) => attribute(each, by, other);
    const key = (each: Value) => keyOf(undefined, isTrue(exact))(raw(each));
    const groups: Value[][] = [];
    for (const each of sorted(itemsOf(value), key, false)) {
      const last = groups.at(-1);
      if (last && equal(key(last[0]!), key(each))) last.push(each);
      else groups.push([each]);
    }
    return list(groups.map((items) => group(raw(items[0]!), items)));
  }),
  min: extreme(1),
  max: extreme(-1),
  sum: taking(["attribute", "start"], (value, { attribute: by, start }) =>
    itemsOf(value)
      .map((each) => (by === undefined || by.type === "NullValue" ? each : attribute(each, by)))
      .reduce((sum, each) => operate("+", sum, each), start ?? integer(0n)),
  ),
  batch: taking(["linecount", "fill_with"], (value, { linecount, fill_with: filler }) =>
    lazy(inRows(itemsOf(value), numberOr(linecount, -1), filler)),
  ),
  select: selecting(true, false),
  reject: selecting(false, false),
  selectattr: selecting(true, true),
  rejectattr: selecting(false, true),
  map: (value, args, named) => {
    const [name, ...others] = args;
    if (name !== undefined) return lazy(itemsIfTrue(value).map((each) => filtered(str(name), each, others, named)));
    const { attribute: by, default: other } = byNames("map", ["attribute", "default"], [], named);
    if (by === undefined) throw new Error("map needs the name of a filter or an attribute");
    return lazy(itemsIfTrue(value).map((each) => attribute(each, by, other)));
  },
};

const otherNames: Readonly<Record<string, string>> = { d: "default", e: "escape", count: "length" };

/** What a filter makes of a value. Throws for a name that is not known. */
export function filtered(name: string, value: Value, args: readonly Value[], named: Named): Value {
  const known = otherNames[name] ?? name;
  if (!Object.hasOwn(filters, known)) throw new NotKnown(`the filter '${name}' of Jinja`, name);
  return filters[known]!(value, args, named);
}
