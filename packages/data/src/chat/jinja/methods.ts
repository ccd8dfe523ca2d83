/** Methods of texts, lists and dicts. Those that change a list or a dict are refused, as by transformers' sandbox. */

import { braced } from "./format.ts";
import type { Value } from "./library.ts";
import { capitalize, kinds, lines, pad, partition, replace, split, strip, title, zfill } from "./strings.ts";
import {
  byNames,
  type Callable,
  dict,
  equal,
  type Given,
  integer,
  isList,
  isMap,
  isSequence,
  isTrue,
  itemsOf,
  list,
  type Named,
  none,
  numberIn,
  str,
  text,
  truth,
  tuple,
  typeName,
  view,
} from "./values.ts";

/** A method of a text, with the names of its parameters. */
type OfTexts = readonly [parameters: readonly string[], call: (text: string, given: Given) => Value];

const textIn = (value: Value | undefined): string => {
  if (typeof value?.value === "string") return value.value;
  throw new Error(value === undefined ? "an argument is missing" : `an argument must be str, not ${typeName(value)}`);
};
const wordIn = (value: Value | undefined) =>
  value === undefined || value.type === "NullValue" ? undefined : textIn(value);
const countIn = (value: Value | undefined) =>
  value === undefined || value.type === "NullValue" ? undefined : Number(numberIn(value));

/** Where a part of a text begins, in letters; -1 if nowhere. */
function placeOf(whole: string, { sub, start, end }: Given, isLast: boolean): number {
  const letters = [...whole];
  const from = placeIn(countIn(start) ?? 0, letters.length);
  const inside = letters.slice(from, placeIn(countIn(end) ?? letters.length, letters.length)).join("");
  const at = isLast ? inside.lastIndexOf(textIn(sub)) : inside.indexOf(textIn(sub));
  return at < 0 || from > letters.length ? -1 : from + [...inside.slice(0, at)].length;
}
const placeIn = (place: number, length: number) => (place < 0 ? Math.max(0, place + length) : place);

const found = (isLast: boolean, mustBe: boolean): OfTexts => [
  ["sub", "start", "end"],
  (whole, given) => {
    const place = placeOf(whole, given, isLast);
    if (mustBe && place < 0) throw new Error("substring not found");
    return integer(BigInt(place));
  },
];
const splitting = (where: "split" | "rsplit"): OfTexts => [
  ["sep", "maxsplit"],
  (whole, { sep, maxsplit }) => list(split(whole, where, wordIn(sep), countIn(maxsplit)).map(text)),
];
const stripping = (where: "strip" | "lstrip" | "rstrip"): OfTexts => [
  ["chars"],
  (whole, { chars }) => text(strip(whole, where, wordIn(chars))),
];
const parting = (isLast: boolean): OfTexts => [
  ["sep"],
  (whole, { sep }) => {
    const at = isLast ? whole.lastIndexOf(textIn(sep)) : whole.indexOf(textIn(sep));
    return tuple(partition(whole, textIn(sep), at, isLast).map(text));
  },
];
const padding = (where: "center" | "ljust" | "rjust"): OfTexts => [
  ["width", "fillchar"],
  (whole, { width, fillchar }) => text(pad(whole, where, countIn(width) ?? 0, wordIn(fillchar))),
];
/** str.startswith and endswith: a tuple has several texts of which one is enough. */
const beginning = (has: (whole: string, part: string) => boolean): OfTexts => [
  ["prefix", "start", "end"],
  (whole, { prefix, start, end }) => {
    const letters = start === undefined ? whole : [...whole].slice(countIn(start), countIn(end)).join("");
    const parts = prefix?.type === "TupleValue" && isList(prefix) ? prefix.value : [prefix];
    return truth(parts.some((part) => has(letters, textIn(part))));
  },
];
const plain = (make: (text: string) => string): OfTexts => [[], (whole) => text(make(whole))];

const ofTexts: Readonly<Record<string, OfTexts>> = {
  upper: plain((whole) => whole.toUpperCase()),
  lower: plain((whole) => whole.toLowerCase()),
  title: plain(title),
  capitalize: plain(capitalize),
  strip: stripping("strip"),
  lstrip: stripping("lstrip"),
  rstrip: stripping("rstrip"),
  split: splitting("split"),
  rsplit: splitting("rsplit"),
  splitlines: [["keepends"], (whole, { keepends }) => list(lines(whole, isTrue(keepends)).map(text))],
  partition: parting(false),
  rpartition: parting(true),
  find: found(false, false),
  rfind: found(true, false),
  index: found(false, true),
  rindex: found(true, true),
  count: [
    ["sub"],
    (whole, { sub }) =>
      integer(BigInt(textIn(sub) === "" ? [...whole].length + 1 : whole.split(textIn(sub)).length - 1)),
  ],
  startswith: beginning((whole, part) => whole.startsWith(part)),
  endswith: beginning((whole, part) => whole.endsWith(part)),
  removeprefix: [
    ["prefix"],
    (whole, { prefix }) => text(whole.startsWith(textIn(prefix)) ? whole.slice(textIn(prefix).length) : whole),
  ],
  removesuffix: [
    ["suffix"],
    (whole, { suffix }) =>
      text(whole.endsWith(textIn(suffix)) ? whole.slice(0, whole.length - textIn(suffix).length) : whole),
  ],
  replace: [
    ["old", "new", "count"],
    (whole, given) => text(replace(whole, textIn(given["old"]), textIn(given["new"]), countIn(given["count"]))),
  ],
  join: [["iterable"], (whole, { iterable }) => text(itemsOf(iterable!).map(textIn).join(whole))],
  center: padding("center"),
  ljust: padding("ljust"),
  rjust: padding("rjust"),
  zfill: [["width"], (whole, { width }) => text(zfill(whole, countIn(width) ?? 0))],
  ...Object.fromEntries(
    Object.entries(kinds).map(([name, is]): [string, OfTexts] => [name, [[], (whole) => truth(is(whole))]]),
  ),
};

/** What changes a value: transformers renders in a sandbox that refuses these. */
const changing: Readonly<Record<string, readonly string[]>> = {
  ArrayValue: ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
  ObjectValue: ["clear", "pop", "popitem", "setdefault", "update"],
};

/** A method of a value by its name; undefined where it has none. */
export function methodOf(value: Value, name: string): Callable | undefined {
  if (changing[value.type]?.includes(name))
    return () => {
      throw new Error(`the method ${name} changes a ${typeName(value)}, which transformers refuses in a template`);
    };
  if (typeof value.value === "string") {
    const whole = value.value;
    if (name === "format") return (args, named) => text(braced(whole, args, named));
    if (!Object.hasOwn(ofTexts, name)) return undefined;
    const [parameters, call] = ofTexts[name]!;
    return (args, named) => call(whole, byNames(name, parameters, args, named));
  }
  if (value.type === "ObjectValue" && isMap(value) && Object.hasOwn(ofDicts, name))
    return (args, named) => ofDicts[name]!(value.value, args, named);
  if (isSequence(value) && Object.hasOwn(ofLists, name)) return (args) => ofLists[name]!(value.value, args);
  return undefined;
}

type OfDicts = (entries: ReadonlyMap<string, Value>, args: readonly Value[], named: Named) => Value;

const ofDicts: Readonly<Record<string, OfDicts>> = {
  get: (entries, args, named) => {
    const { key, default: other } = byNames("get", ["key", "default"], args, named);
    return (typeof key?.value === "string" ? entries.get(key.value) : undefined) ?? other ?? none;
  },
  items: (entries) =>
    view(
      "dict_items",
      [...entries].map(([key, value]) => tuple([text(key), value])),
    ),
  keys: (entries) => view("dict_keys", [...entries.keys()].map(text)),
  values: (entries) => view("dict_values", [...entries.values()]),
  copy: (entries) => dict(entries),
};

const ofLists: Readonly<Record<string, (items: readonly Value[], args: readonly Value[]) => Value>> = {
  count: (items, [value]) => integer(BigInt(items.filter((each) => equal(each, value!)).length)),
  index: (items, [value]) => {
    const at = items.findIndex((each) => equal(each, value!));
    if (at < 0) throw new Error(`${str(value!)} is not in list`);
    return integer(BigInt(at));
  },
  copy: (items) => list([...items]),
};
