/** Work that succeeds on all ranks or on none. */
import { hostname } from "node:os";
import { CheckpointError, inWords, isObject, OutOfReachError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { agreed } from "../end-others.ts";
import { sentence } from "../failure.ts";
import { gatherJson } from "../gather-json.ts";

interface Outcome<T> {
  readonly host: string;
  readonly result?: T;
  readonly problem?: string;
  readonly isOutOfReach?: boolean;
}

const isOutcome = (value: unknown) =>
  isObject(value) &&
  typeof value["host"] === "string" &&
  (value["problem"] === undefined || typeof value["problem"] === "string");

/**
 * Runs `work` on every rank, and resolves to the results of all ranks, which are JSON. Where it fails on one rank, all
 * ranks throw the same `CheckpointError`: an `OutOfReachError` where it is one on a rank. It names the machines on which
 * it failed, where that is not so on all.
 */
export async function onEveryRank<T>(group: Group, work: () => T | Promise<T>): Promise<T[]> {
  const host = hostname();
  let mine: Outcome<T>;
  try {
    mine = { host, result: await work() };
  } catch (error) {
    mine = { host, problem: sentence(error), isOutOfReach: inWords(error) instanceof OutOfReachError };
  }
  const all = await gatherJson(group, mine, isOutcome);
  const problems = problemsOf(all);
  const Kind = all.some(({ isOutOfReach }) => isOutOfReach) ? OutOfReachError : CheckpointError;
  if (problems.length > 0) throw agreed(new Kind(problems.join("; ")));
  return all.map(({ result }) => result as T);
}

/** Every problem once, with the machines that have it. */
function problemsOf(outcomes: readonly Outcome<unknown>[]): string[] {
  const hostsWith = (has: (problem: string | undefined) => boolean) =>
    new Set(outcomes.filter(({ problem }) => has(problem)).map(({ host }) => host));
  const all = hostsWith(() => true);
  const problems = new Set(outcomes.flatMap(({ problem }) => problem ?? []));
  return [...problems].map((problem) => {
    const hosts = hostsWith((each) => each === problem);
    return hosts.size === all.size ? problem : `on ${[...hosts].join(", ")}: ${problem}`;
  });
}
