/** The command line of `./terse bench`. */
import { choose, OptionsError, parseArguments } from "@terse/options";
import type { Suite } from "./suite.ts";

export interface Arguments {
  readonly suite: string;
  /** The settings to measure, in the suite's order. */
  readonly settings: readonly string[];
  /** File, or - for standard output. */
  readonly json?: string;
  /** File of the picture of what is measured now. */
  readonly svg?: string;
  readonly record: boolean;
  /** File of lines that another machine measured. */
  readonly from?: string;
  /** Keys of the recipe by which the suite trains, with their new values. */
  readonly overrides: readonly string[];
}

/**
 * `recipeKeys`: what may be overridden in the recipes of suites that train by one. Undefined where only the usage is
 * wanted. Throws `OptionsError` for what it cannot read.
 */
export function readArguments(
  argv: readonly string[],
  suites: Readonly<Record<string, Suite>>,
  recipeKeys: Readonly<Record<string, readonly string[]>> = {},
  pictures: Readonly<Record<string, unknown>> = {},
): Arguments | undefined {
  const { help, flags, words, ...given } = parseArguments(argv, {
    command: "./terse bench",
    flags: {
      json: String,
      from: String,
      settings: (text) => text.split(","),
      record: "switch",
      data: String,
      svg: String,
    },
    overrides: argv.flatMap((word) => recipeKeys[word] ?? []),
  });
  if (help || words.length === 0) return undefined;
  if (words.length > 1)
    throw new OptionsError([`give one suite at a time, not ${words.length}: ${words.join(" and ")}`]);
  const suite = words[0]!;
  const all = choose("suite", suite, suites);
  if (flags.data !== undefined && recipeKeys[suite] === undefined)
    throw new OptionsError([`--data: ${suite} trains by no recipe; these suites do: ${listed(recipeKeys)}`]);
  if (flags.svg !== undefined && pictures[suite] === undefined)
    throw new OptionsError([`--svg: ${suite} has no picture; these suites have one: ${listed(pictures)}`]);
  const path = flags.data === undefined ? [] : [`data.path=${JSON.stringify(flags.data)}`];
  const overrides = [...path, ...given.overrides];
  if (flags.record && overrides.length > 0)
    throw new OptionsError([
      `--record keeps runs of the recipe as it is; leave out ${overrides.join(" ")}, or --record`,
    ]);
  for (const setting of flags.settings ?? []) choose(`setting of ${suite}`, setting, all);
  return {
    suite,
    settings: Object.keys(all).filter((setting) => flags.settings?.includes(setting) ?? true),
    ...(flags.json !== undefined && { json: flags.json }),
    ...(flags.svg !== undefined && { svg: flags.svg }),
    record: flags.record ?? false,
    ...(flags.from !== undefined && { from: flags.from }),
    overrides,
  };
}

const listed = (names: object) => Object.keys(names).join(", ");

export function usageOf(suites: Readonly<Record<string, Suite>>, subjects: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(suites).map((name) => name.length));
  const lines = Object.entries(suites).map(([name, suite]) => {
    const settings = Object.keys(suite);
    const rows = [subjects[name] ?? "", ...(settings.length > 1 ? wrapped(settings, 76 - width) : [])];
    return `  ${name.padEnd(width)}  ${rows.join(`\n  ${" ".repeat(width)}  `)}`.trimEnd();
  });
  return `usage: ./terse bench SUITE [options]

  --settings A,B   measure only these settings of the suite
  --json FILE      write one JSON object a line (- for standard output)
  --svg FILE       draw what is measured now
  --record         write into docs/results, with report and picture; settings
                   that are not measured now keep their lines
  --from FILE      take the lines that --json has written on another machine,
                   and measure nothing
  --data PATH      of convergence, models and recipe: train on your own data,
                   the same as --data.path=PATH; not with --record
  --KEY=VALUE      of convergence, models and recipe: overrides a key of the
                   recipe, such as --steps=40; not with --record

suites, what they measure, and their settings:
${lines.join("\n")}
`;
}

function wrapped(words: readonly string[], width: number): string[] {
  const lines = [""];
  for (const word of words)
    if (lines.at(-1)!.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  return lines;
}
