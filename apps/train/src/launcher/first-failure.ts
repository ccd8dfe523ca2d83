/** Which of the ranks that failed was the first, and what to tell the user. */
import { constants } from "node:os";
import type { Failure } from "./rank-process.ts";

/** Names of the errors of a rank that failed because another one did. */
const consequences = ["RankLostError", "CollectiveError"];

/** The rank that failed first: one that a signal killed, else one that failed by itself, with an error or without, else the first one. */
export function firstFailure(failures: readonly Failure[]): Failure | undefined {
  return (
    failures.find(({ signal, stopped, error }) => signal !== undefined && !stopped && !error) ??
    failures.find(({ error }) => error && !consequences.includes(error.name)) ??
    failures.find(({ error, stopped }) => !error && !stopped) ??
    failures[0]
  );
}

/** Whether all ranks of the world report the error as their own: a wrong option, or a loss that is not finite. It would come again. */
export function isOfAllRanks({ error }: Failure, failures: readonly Failure[], ranks: number): boolean {
  if (!error || consequences.includes(error.name)) return false;
  return failures.filter((each) => each.error?.message === error.message).length === ranks;
}

/** One line: the rank, its host, how it ended, and its error or its last output; of what all ranks report, the error alone. */
export function describeFailure(first: Failure, failures: readonly Failure[], ranks: number): string {
  const { rank, host, error, signal, code, why, lastLines, log } = first;
  if (isOfAllRanks(first, failures, ranks)) return error!.message;
  if (error) return `rank ${rank} on ${host}: ${error.message}${log === undefined ? "" : `; its log: ${log}`}`;
  const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
  const output = lastLines.length > 0 ? ` Its last output: ${lastLines.slice(-3).join(" | ")}` : "";
  return `rank ${rank} on ${host} ${how} and all others were stopped${why === undefined ? "" : `: ${why}`}.${output}${log === undefined ? "" : ` Its log: ${log}`}`;
}

/** As shells count it. */
export function exitCodeOfFailure({ code, signal }: Failure): number {
  return code ?? (signal === undefined ? 1 : 128 + constants.signals[signal]);
}
