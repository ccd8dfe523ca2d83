/**
 * The words of a command line, split by node:util's `parseArgs`. Errors name the flag, the nearest known flag, and what
 * to write instead. No package is imported, so that tools can read their arguments before any package is installed.
 */
import { parseArgs } from "node:util";
import { nearest, normalised, ownWord } from "./nearest.ts";
import { OptionsError } from "./options-error.ts";

/** Turns the text of a flag into its value; the message of its error follows the flag's name. */
export type FlagReader<T> = (text: string) => T;

/**
 * What a flag takes: a text that is read, several such texts (the flag may be repeated), a text that may be left out
 * and is then read as "" (given as --flag=TEXT), or nothing.
 */
export type Flag =
  | FlagReader<unknown>
  | { readonly each: FlagReader<unknown> }
  | { readonly optional: FlagReader<unknown> }
  | "switch";

type ValueOf<F> = F extends "switch"
  ? true
  : F extends { readonly each: FlagReader<infer T> }
    ? T[]
    : F extends FlagReader<infer T> | { readonly optional: FlagReader<infer T> }
      ? T
      : never;

/** What a command takes: its flags and the keys that can be overridden. */
export interface Syntax<Flags> {
  /** As users write it: "./terse train". */
  readonly command: string;
  /** The flags by their names in camelCase: `masterPort` is --master-port. */
  readonly flags: Flags;
  /** Keys of a recipe: --KEY=VALUE and --KEY.OPTION=VALUE override it. */
  readonly overrides?: readonly string[];
  /**
   * All of these keys with their dots: "data.batchSize". An error names one whose last part is the unknown flag:
   * --batch-size.
   */
  readonly dotted?: () => readonly string[];
}

/** The arguments of a command line, sorted. */
export interface ParsedArguments<Flags> {
  /** --help or -h was given; everything else is empty then. */
  readonly help: boolean;
  readonly flags: { readonly [Name in keyof Flags]?: ValueOf<Flags[Name]> };
  /** Words that belong to no flag, also those after `--`. */
  readonly words: readonly string[];
  /** The overrides in their order, as `applyOverrides` takes them: "optimizer.lr=3e-4". */
  readonly overrides: readonly string[];
  /** Everything after a word that is only `--`; undefined where there is none. */
  readonly rest: readonly string[] | undefined;
}

/**
 * Reads the words of a command line. `--steps 5` and `--steps=5` are the same. Of a flag that is given twice the last
 * value counts; one with `each` has all its values. Throws one `OptionsError` with a line for each problem.
 */
export function parseArguments<const Flags extends Readonly<Record<string, Flag>>>(
  argv: readonly string[],
  { command, flags, overrides = [], dotted = () => overrides }: Syntax<Flags>,
): ParsedArguments<Flags> {
  const keys = new Map(Object.keys(flags).map((key) => [dashed(key), key]));
  const isOverride = (name: string) => overrides.includes(name.split(".")[0]!);
  const mayOverride = argv.filter((word) => word.startsWith("--")).map((word) => word.slice(2).split("=")[0]!);
  const options = new Map<string, { type: "string" | "boolean"; short?: string }>([
    ...mayOverride.filter(isOverride).map((name) => [name, { type: "string" }] as const),
    ...[...keys].map(([name, key]) => [name, { type: standsAlone(flags[key]) ? "boolean" : "string" }] as const),
    ["help", { type: "boolean", short: "h" }],
  ]);
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options),
    strict: false, // the errors of strict mode do not name the nearest flag
    tokens: true,
    allowPositionals: true,
  });

  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const given: string[] = [];
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const key = rawName.startsWith("--") ? keys.get(name) : undefined;
    const flag = key === undefined ? undefined : flags[key];
    if (name === "help" && value === undefined)
      return { help: true, flags: {}, words: [], overrides: [], rest: undefined };
    if (flag === "switch" || name === "help") {
      if (value === undefined) values[key!] = true;
      else problems.push(`${rawName} takes no value, got "${value}"`);
    } else if (flag === undefined && !(rawName.startsWith("--") && isOverride(name)))
      problems.push(
        `${rawName}: unknown flag${hint(name, [...options.keys(), ...overrides], { overrides, dotted: dotted() })} See ${command} --help.`,
      );
    else if ((value || !isOptional(flag)) && (!value || (!inlineValue && value.startsWith("--"))))
      problems.push(`${rawName} needs a value; see ${command} --help`);
    else if (flag === undefined) given.push(`${name}=${value}`);
    else
      try {
        if (typeof flag === "function") values[key!] = flag(value!);
        else if (isOptional(flag)) values[key!] = flag.optional(value ?? "");
        else values[key!] = [...((values[key!] as unknown[] | undefined) ?? []), flag.each(value!)];
      } catch (error) {
        problems.push(`${rawName}: ${(error as Error).message}`);
      }
  }
  if (problems.length > 0) throw new OptionsError(problems);
  const end = tokens.find(({ kind }) => kind === "option-terminator")?.index;
  return {
    help: false,
    flags: values as ParsedArguments<Flags>["flags"],
    words: tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : [])),
    overrides: given,
    rest: end === undefined ? undefined : argv.slice(end + 1),
  };
}

/** Whether the word after it is no value of it. */
const standsAlone = (flag: Flag | undefined) => flag === "switch" || isOptional(flag);

function isOptional(flag: Flag | undefined): flag is { readonly optional: FlagReader<unknown> } {
  return typeof flag === "object" && "optional" in flag;
}

/**
 * `; did you mean --steps?`, or a full stop. Of a dotted name the first part is compared with the keys of the recipe;
 * another name first with the last parts of all keys, and then with what is similar.
 */
function hint(
  name: string,
  flags: readonly string[],
  { overrides, dotted }: { overrides: readonly string[]; dotted: readonly string[] },
): string {
  const [first, ...more] = name.split(".") as [string, ...string[]];
  if (more.length > 0)
    return meaning([nearest(first, overrides)].flatMap((near) => (near ? [[near, ...more].join(".")] : [])));
  const same = endingIn(ownWord(name), dotted);
  const near = nearest(name, flags);
  if (same.length > 0 || near !== undefined) return meaning(same.length > 0 ? same : [near!]);
  const similar = nearest(name, dotted.map(lastPart));
  return meaning(similar === undefined ? [] : endingIn(similar, dotted));
}

/**
 * The keys whose last part is this word, in any spelling. Where one of them is the end of another, that one is left
 * out: `lr` means optimizer.lr, and not local.optimizer.lr.
 */
export function endingIn(word: string, dotted: readonly string[]): readonly string[] {
  const ending = dotted.filter((key) => normalised(lastPart(key)) === normalised(word));
  return ending.filter((key) => !ending.some((other) => key.endsWith(`.${other}`)));
}

const lastPart = (key: string) => key.slice(key.lastIndexOf(".") + 1);

const meaning = (keys: readonly string[]) =>
  keys.length === 0 ? "." : `; did you mean ${keys.map((key) => `--${key}`).join(" or ")}?`;

/** "masterPort" → "master-port". */
const dashed = (key: string) => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

interface Range {
  readonly least: number;
  readonly most?: number;
  readonly examples?: string; // of another notation: "350k, 7G"
}

/**
 * Reads a number from `least` to `most`, both included; otherwise it throws a RangeError. `toNumber` reads another
 * notation, and gives NaN for what it cannot read.
 */
export const numberFrom = (range: Range, toNumber = Number as FlagReader<number>): FlagReader<number> =>
  readNumber("a number", range, (text) => toNumber(text));

/** `numberFrom` for whole numbers. */
export const wholeNumberFrom = (range: Range, toNumber = Number as FlagReader<number>): FlagReader<number> =>
  readNumber("a whole number", range, (text) => (Number.isInteger(toNumber(text)) ? toNumber(text) : Number.NaN));

function readNumber(
  noun: string,
  { least, most = Number.POSITIVE_INFINITY, examples }: Range,
  toNumber: FlagReader<number>,
): FlagReader<number> {
  return (text) => {
    const value = toNumber(text);
    if (Number.isFinite(value) && value >= least && value <= most) return value;
    const range = Number.isFinite(most) ? `from ${least} to ${most}` : `≥ ${least}`;
    const such = examples === undefined ? "" : `, such as ${examples}`;
    throw new RangeError(`expected ${noun} ${range}${such}, got "${text}"`);
  };
}

/** Reads one of these words; any other one is a RangeError that names the nearest. */
export function wordOf<const Words extends readonly string[]>(words: Words): FlagReader<Words[number]> {
  return (text) => {
    if (words.includes(text)) return text;
    const near = nearest(text, words);
    throw new RangeError(
      `expected one of ${words.join(", ")}, got "${text}"${near === undefined ? "" : `; did you mean ${near}?`}`,
    );
  };
}
