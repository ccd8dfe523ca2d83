/** Work that succeeds on all ranks or on none. */
import { CheckpointError, inWords, isObject, OutOfReachError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { agreed } from "../end-others.ts";
import { sentence } from "../failure.ts";
import { gatherJson } from "../gather-json.ts";

const isOutcome = (value: unknown) =>
  isObject(value) && (value["problem"] === undefined || typeof value["problem"] === "string");

/**
 * Runs `work` on every rank, and resolves to the results of all ranks, which are JSON. Where it fails on one rank, all
 * ranks throw the same `CheckpointError`: an `OutOfReachError` where it is one on a rank.
 */
export async function onEveryRank<T>(group: Group, work: () => T | Promise<T>): Promise<T[]> {
  let mine: { result?: T; problem?: string; isOutOfReach?: boolean };
  try {
    mine = { result: await work() };
  } catch (error) {
    mine = { problem: sentence(error), isOutOfReach: inWords(error) instanceof OutOfReachError };
  }
  const all = await gatherJson(group, mine, isOutcome);
  const problems = new Set(all.flatMap(({ problem }) => (problem === undefined ? [] : [problem])));
  const Kind = all.some(({ isOutOfReach }) => isOutOfReach) ? OutOfReachError : CheckpointError;
  if (problems.size > 0) throw agreed(new Kind([...problems].join("; ")));
  return all.map(({ result }) => result as T);
}
