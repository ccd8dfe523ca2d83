/** Which of the ranks that failed was the first, and what to tell the user. */
import { constants } from "node:os";
import { printableLine } from "@terse/options";
import type { Failure } from "./rank-process.ts";

/** Names of the errors of a rank that failed because another one did. */
const consequences = ["RankLostError", "CollectiveError"];

/** The rank that failed first: one that a signal killed, else one that failed by itself, else the first one. */
export function firstFailure(failures: readonly Failure[]): Failure | undefined {
  const inOrder = inOrderOfTime(failures);
  return (
    inOrder.find(({ signal, stopped, error }) => signal !== undefined && !stopped && !error) ??
    inOrder.find(({ error }) => error && !consequences.includes(error.name)) ??
    inOrder.find(({ error, stopped }) => !error && !stopped) ??
    inOrder[0]
  );
}

/**
 * The failures, ordered by the machines' clocks. Clocks differ by less than the timeouts after which one failure
 * follows another. The order stays as it is where a launcher of another version tells no time.
 */
function inOrderOfTime(failures: readonly Failure[]): readonly Failure[] {
  if (failures.some(({ time }) => time === undefined)) return failures;
  return failures.toSorted((a, b) => a.time! - b.time!);
}

/**
 * Whether all ranks report the error as their own, such as a wrong option or a loss that is not finite. A restart would
 * meet it again.
 */
export function isOfAllRanks({ error }: Failure, failures: readonly Failure[], ranks: number): boolean {
  if (!error || consequences.includes(error.name)) return false;
  return failures.filter((each) => each.error?.message === error.message).length === ranks;
}

/**
 * One line: the rank, its host, how it ended, and its error or its last output. For an error of all ranks, the error
 * alone.
 */
export function describeFailure(first: Failure, failures: readonly Failure[], ranks: number): string {
  const { rank, host, error, signal, code, why, lastLines, log } = first;
  if (isOfAllRanks(first, failures, ranks)) return error!.message;
  const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
  const said = lastLines.filter((line) => !isFrame(line)).slice(-3);
  const details = [
    ...(log === undefined ? [] : [` Its log: ${printableLine(log)}.`]),
    ...(said.length > 0 ? [` Its last output: ${said.join(" | ")}`] : []), // with its own full stop
  ].join("");
  if (error) return `rank ${rank} on ${host}: ${error.message} (it ${how}).${details}`;
  return `rank ${rank} on ${host} ${how} and all others were stopped${why === undefined ? "" : `: ${why}`}.${details}`;
}

/** A line of the backtrace that Node prints when it ends itself; before it stands why. */
const isFrame = (line: string): boolean =>
  /^\s*\d+: (0x)?[0-9a-f]{6,} |^-+ (Native|JavaScript) stack trace -+$/.test(line) || line.trim() === "";

/** The exit code, as shells count it. */
export function exitCodeOfFailure({ code, signal }: Failure): number {
  return code ?? (signal === undefined ? 1 : 128 + constants.signals[signal]);
}
