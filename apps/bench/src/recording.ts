/** Recorded runs, docs/results/SUITE.jsonl: a line for each measurement, with its setting, its time and its machine. */
import { existsSync, readFileSync } from "node:fs";
import { OptionsError } from "@terse/options";
import type { Measurement } from "./measurement.ts";
import { whyNot } from "./output.ts";

export interface RecordedLine extends Measurement {
  readonly bench: string;
  readonly setting: string;
  /** When the measurement of its setting began: 2026-11-21T22:18Z. */
  readonly recorded: string;
  readonly machine: string;
}

/** The lines of `now` replace all earlier lines of the same settings; in the suite's order. */
export function merged(
  before: readonly RecordedLine[],
  now: readonly RecordedLine[],
  settings: readonly string[],
): RecordedLine[] {
  const fresh = new Set(now.map(({ setting }) => setting));
  return settings.flatMap((name) => (fresh.has(name) ? now : before).filter(({ setting }) => setting === name));
}

export function readLines(file: URL): RecordedLine[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => withNaN(JSON.parse(line)));
}

/** JSON writes NaN, of a run that broke off, as null. */
const withNaN = (line: RecordedLine): RecordedLine => ({ ...line, value: line.value ?? Number.NaN });

/** The lines of a suite that another machine has written with --json. Throws `OptionsError` where there are none. */
export function linesFrom(path: string, suite: string): RecordedLine[] {
  const text = (() => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw new OptionsError([`--from: ${path} cannot be read: ${whyNot(error)}`]);
    }
  })();
  const lines = text.split("\n").flatMap((line, i) => {
    if (line === "") return [];
    const value = lineIn(line);
    if (!value) throw new OptionsError([`--from: ${path}:${i + 1} is no line that ./terse bench --json has written`]);
    return value.bench === suite ? [value] : [];
  });
  if (lines.length === 0) throw new OptionsError([`--from: ${path} has no lines of ${suite}`]);
  return lines;
}

function lineIn(json: string): RecordedLine | undefined {
  try {
    const line = JSON.parse(json) as Partial<RecordedLine> | null;
    const isLine = ["bench", "setting", "recorded", "machine", "case", "metric", "unit"].every(
      (key) => typeof line?.[key as keyof RecordedLine] === "string",
    );
    return isLine ? withNaN(line as RecordedLine) : undefined;
  } catch {
    return undefined;
  }
}

export const written = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

export interface Provenance {
  readonly machine: string;
  readonly when: string;
}

/** When each setting was recorded, "2x100mbit: 2026-11-21 22:18 UTC; …", and on which machines. */
export function provenance(lines: readonly RecordedLine[]): Provenance {
  const times = new Map(lines.map(({ setting, recorded }) => [setting, recorded]));
  const byTime = Map.groupBy([...times], ([, recorded]) => recorded);
  const when = [...byTime].map(
    ([recorded, settings]) =>
      `${settings.map(([setting]) => setting).join(", ")}: ${recorded.replace("T", " ").replace("Z", " UTC")}`,
  );
  return { machine: [...new Set(lines.map(({ machine }) => machine))].join("; "), when: when.join("; ") };
}
