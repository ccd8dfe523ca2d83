/**
 * A training of the train app with two ranks on this machine, from its start to its end, and what its metrics.jsonl
 * says.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface LoggedStep {
  readonly step: number;
  readonly step_seconds: number;
  readonly sent_bytes: number;
}

/** The program of `./terse train`. */
export const main: string = fileURLToPath(new URL("../../../train/src/main.ts", import.meta.url));

/**
 * Resolves when the run in `folder` has ended. It logs every step, and neither evaluates, saves nor compares before its
 * end.
 */
export async function trained(folder: string, args: readonly string[]): Promise<void> {
  const quiet = [
    "logEvery=1",
    "evaluate.every=0",
    "evaluate.windows=1",
    "compareEvery=0",
    "measureEvery=0",
    "sample.bytes=0",
  ];
  const argv = ["train", "--nproc-per-node=2", "--out", folder, ...quiet.map((each) => `--${each}`), ...args];
  const child = spawn(process.execPath, [...process.execArgv, main, ...argv], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error("a training has failed; its error is above");
}

/** The steps of a run that have been logged. */
export function stepsOf(folder: string): LoggedStep[] {
  return readFileSync(join(folder, "metrics.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line.includes('"step_seconds"'))
    .map((line) => JSON.parse(line) as LoggedStep);
}
