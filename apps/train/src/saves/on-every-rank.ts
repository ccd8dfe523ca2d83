/** Work that succeeds on all ranks or on none. */
import { CheckpointError, isObject } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { agreed } from "../end-others.ts";
import { sentence } from "../failure.ts";
import { gatherJson } from "../gather-json.ts";

const isOutcome = (value: unknown) =>
  isObject(value) && (value["problem"] === undefined || typeof value["problem"] === "string");

/**
 * Runs `work` on every rank, and resolves to the results of all ranks, which are JSON. Where it fails on one rank, all
 * ranks throw the same `CheckpointError`.
 */
export async function onEveryRank<T>(group: Group, work: () => T | Promise<T>): Promise<T[]> {
  let mine: { result?: T; problem?: string };
  try {
    mine = { result: await work() };
  } catch (error) {
    mine = { problem: sentence(error) };
  }
  const all = await gatherJson(group, mine, isOutcome);
  const problems = new Set(all.flatMap(({ problem }) => (problem === undefined ? [] : [problem])));
  if (problems.size > 0) throw agreed(new CheckpointError([...problems].join("; ")));
  return all.map(({ result }) => result as T);
}
