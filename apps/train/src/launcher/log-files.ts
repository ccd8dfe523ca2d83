/**
 * `--log-dir`: what each rank prints, in attempt-A/rank-R.log. Later starts in the same folder continue the count of
 * attempts.
 */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "@terse/checkpoint";
import { print } from "@terse/options";
import { AppendedFile } from "../appended-file.ts";

const attemptFolder = (logDir: string, attempt: number) => join(logDir, `attempt-${attempt}`);
export const logFile = (logDir: string, attempt: number, rank: number): string =>
  join(attemptFolder(logDir, attempt), `rank-${rank}.log`);

/** The number of the first attempt without logs there. Throws `CheckpointError` where the folder cannot be made. */
export function firstAttempt(logDir: string): number {
  makeFolder(logDir);
  const attempts = readdirSync(logDir).flatMap((name) => /^attempt-(\d+)$/.exec(name)?.[1] ?? []);
  return Math.max(-1, ...attempts.map(Number)) + 1;
}

/** Opens the log of a rank. Throws `CheckpointError` where its folder cannot be made. */
export function openLog(logDir: string, attempt: number, rank: number): AppendedFile {
  makeFolder(attemptFolder(logDir, attempt));
  const path = logFile(logDir, attempt, rank);
  const log = new AppendedFile({ path, piece: "line", say: (text) => print(text, process.stderr) });
  log.append(""); // a rank that prints nothing has a log, too
  return log;
}
