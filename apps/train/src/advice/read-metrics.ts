/** Reads metrics.jsonl of a run. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError } from "@terse/checkpoint";
import type { Line } from "../shows/numbers-of.ts";

/**
 * The lines of a run's metrics.jsonl. What is no line of metrics is left out, such as a last one that was cut short; `report` is given a
 * sentence about it. CheckpointError where there is no such file.
 */
export function readMetrics(run: string, report: (problem: string) => void = () => {}): Line[] {
  const file = join(run, "metrics.jsonl");
  if (!existsSync(file))
    throw new CheckpointError(`${run} has no metrics.jsonl: name the folder of a run, such as runs/NAME-TIME`);
  const { lines, problem } = parseMetrics(readFileSync(file, "utf8"));
  if (problem !== undefined) report(`${file}: ${problem}`);
  return lines;
}

/** The lines of metrics.jsonl's text, and a sentence about what is none of them. */
export function parseMetrics(text: string): { lines: Line[]; problem: string | undefined } {
  const all = text.split("\n");
  const isCut = all.at(-1) !== "";
  const lines: Line[] = [];
  const wrong: number[] = []; // counted from 1, as editors do
  for (const [i, each] of all.entries()) {
    const line = parseLine(each);
    if (line) lines.push(line);
    else if (each !== "" || i < all.length - 1) wrong.push(i + 1);
  }
  if (wrong.length === 0) return { lines, problem: undefined };
  if (isCut && wrong.length === 1 && wrong[0] === all.length)
    return { lines, problem: "the last line is cut short, and is left out" };
  const [which, are] =
    wrong.length === 1 ? [`line ${wrong[0]}`, "is"] : [`${wrong.length} lines, from line ${wrong[0]} on,`, "are"];
  return { lines, problem: `${which} cannot be read, and ${are} left out` };
}

function parseLine(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Line | null;
    return typeof line?.step === "number" ? line : undefined;
  } catch {
    return undefined;
  }
}
