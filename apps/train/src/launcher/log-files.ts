/** `--log-dir`: what each rank prints, in attempt-A/rank-R.log. Attempts of later starts in the same folder are counted on. */

import { createWriteStream, readdirSync, type WriteStream } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "@terse/checkpoint";
import { print } from "@terse/options";

const attemptFolder = (logDir: string, attempt: number) => join(logDir, `attempt-${attempt}`);
export const logFile = (logDir: string, attempt: number, rank: number): string =>
  join(attemptFolder(logDir, attempt), `rank-${rank}.log`);

/** The number of the first attempt that has no logs there yet. Throws `CheckpointError` where the folder cannot be made. */
export function firstAttempt(logDir: string): number {
  makeFolder(logDir);
  const attempts = readdirSync(logDir).flatMap((name) => /^attempt-(\d+)$/.exec(name)?.[1] ?? []);
  return Math.max(-1, ...attempts.map(Number)) + 1;
}

/** Opens the log of a rank. A disk that does not take it is reported once, and the training goes on. */
export function openLog(logDir: string, attempt: number, rank: number): WriteStream {
  makeFolder(attemptFolder(logDir, attempt));
  const path = logFile(logDir, attempt, rank);
  return createWriteStream(path, { flags: "a" }).once("error", (error) => {
    print(`${path} cannot be written (${error.message}); the training goes on without it`, process.stderr);
  });
}
