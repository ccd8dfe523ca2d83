/** Which of the ranks that failed was the first, and what to tell the user. */
import { constants } from "node:os";
import type { Failure } from "./rank-process.ts";

/** Names of the errors of a rank that failed because another one did. */
const consequences = ["RankLostError", "CollectiveError"];

/** The rank that failed first: one that a signal killed, else one that failed by itself, else the first in the list. */
export function firstFailure(failures: readonly Failure[]): Failure | undefined {
  return (
    failures.find(({ signal, stopped, error }) => signal !== undefined && !stopped && !error) ??
    failures.find(({ error }) => error && !consequences.includes(error.name)) ??
    failures[0]
  );
}

/** One line: the rank, its host, how it ended, and its error or its last output. What all `ranks` report is no rank's own. */
export function describeFailure(first: Failure, failures: readonly Failure[], ranks: number): string {
  const { rank, host, error, signal, code, why, lastLines, log } = first;
  const inLog = log === undefined ? "" : ` Its log: ${log}`;
  if (error) {
    const same = failures.filter((each) => each.error?.message === error.message).length;
    return same === ranks ? error.message : `rank ${rank} on ${host}: ${error.message}${inLog}`;
  }
  const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
  const output = lastLines.length > 0 ? ` Its last output: ${lastLines.slice(-3).join(" | ")}` : "";
  return `rank ${rank} on ${host} ${how} and all others were stopped${why === undefined ? "" : `: ${why}`}.${output}${inLog}`;
}

/** As shells count it. */
export function exitCodeOfFailure({ code, signal }: Failure): number {
  return code ?? (signal === undefined ? 1 : 128 + constants.signals[signal]);
}
