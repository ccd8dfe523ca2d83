/** The command line of `./terse bench`. */
import { choose, OptionsError, parseArguments } from "@terse/options";
import type { Suite } from "./suite.ts";

export interface Arguments {
  readonly suite: string;
  /** The settings to measure, in the suite's order. */
  readonly settings: readonly string[];
  /** File, or - for standard output. */
  readonly json?: string;
  readonly record: boolean;
}

/** Undefined where only the usage is wanted. Throws `OptionsError` for what it cannot read. */
export function readArguments(argv: readonly string[], suites: Readonly<Record<string, Suite>>): Arguments | undefined {
  const { help, flags, words } = parseArguments(argv, {
    command: "./terse bench",
    flags: { json: String, settings: (text) => text.split(","), record: "switch" },
  });
  if (help || words.length === 0) return undefined;
  if (words.length > 1)
    throw new OptionsError([`give one suite at a time, not ${words.length}: ${words.join(" and ")}`]);
  const suite = words[0]!;
  const all = choose("suite", suite, suites);
  for (const setting of flags.settings ?? []) choose(`setting of ${suite}`, setting, all);
  return {
    suite,
    settings: Object.keys(all).filter((setting) => flags.settings?.includes(setting) ?? true),
    ...(flags.json !== undefined && { json: flags.json }),
    record: flags.record ?? false,
  };
}

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
  --record         write into docs/results, with report and picture; settings
                   that are not measured now keep their lines

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
