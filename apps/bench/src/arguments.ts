/** What `./terse bench` is asked. */
import { choose, nearest, OptionsError } from "@terse/options";
import type { Suite } from "./suite.ts";

export interface Arguments {
  readonly suite: string;
  /** Of the suite: those that are asked for, in the suite's order. */
  readonly settings: readonly string[];
  /** File, or - for standard output. */
  readonly json?: string;
  readonly record: boolean;
}

const withValue = ["--json", "--settings"];
const flags = [...withValue, "--record", "--help", "-h"];

/** Undefined where only the usage is asked for. */
export function readArguments(argv: readonly string[], suites: Readonly<Record<string, Suite>>): Arguments | undefined {
  const words: string[] = [];
  const given = new Map<string, string>();
  for (let i = 0; i < argv.length; i++) {
    const [name, inline] = argv[i]!.split(/=(.*)/s) as [string, string?];
    if (!name.startsWith("-")) words.push(argv[i]!);
    else if (!flags.includes(name)) {
      const near = nearest(name, flags);
      throw new OptionsError([
        `${name}: unknown flag${near ? `; did you mean ${near}?` : "."} See ./terse bench --help.`,
      ]);
    } else if (withValue.includes(name)) {
      const value = inline ?? argv[++i];
      if (!value || (inline === undefined && value.startsWith("--")))
        throw new OptionsError([
          name === "--json" ? "--json needs a file, or - for standard output" : `${name} needs a value, such as A,B`,
        ]);
      given.set(name, value);
    } else if (inline !== undefined) throw new OptionsError([`${name} takes no value, got "${inline}"`]);
    else given.set(name, "");
  }
  if (given.has("--help") || given.has("-h") || words.length === 0) return undefined;
  if (words.length > 1) throw new OptionsError([`one suite at a time: ${words.join(" and ")} are ${words.length}`]);
  const suite = words[0]!;
  const all = choose("suite", suite, suites);
  const wanted = given.get("--settings")?.split(",");
  for (const setting of wanted ?? []) choose(`setting of ${suite}`, setting, all);
  const json = given.get("--json");
  return {
    suite,
    settings: Object.keys(all).filter((setting) => wanted?.includes(setting) ?? true),
    ...(json !== undefined && { json }),
    record: given.has("--record"),
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

  --settings A,B   only these settings of the suite
  --json FILE      one JSON object a line (- for standard output)
  --record         into docs/results, with report and picture; settings that
                   were not measured keep their lines

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
