/** Work that succeeds on all ranks or on none. */
import { CheckpointError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { agreed } from "../end-others.ts";
import { sentence } from "../failure.ts";
import { gatherTexts } from "../gather-texts.ts";

/**
 * Runs `work` on every rank, and resolves to every rank's result, which is JSON. Where it fails on a rank, all ranks throw the same
 * `CheckpointError`.
 */
export async function together<T>(group: Group, work: () => T | Promise<T>): Promise<T[]> {
  let mine: { result?: T; problem?: string };
  try {
    mine = { result: await work() };
  } catch (error) {
    mine = { problem: sentence(error) };
  }
  const all = (await gatherTexts(group, JSON.stringify(mine))).map((text) => JSON.parse(text) as typeof mine);
  const problems = new Set(all.flatMap(({ problem }) => (problem === undefined ? [] : [problem])));
  if (problems.size > 0) throw agreed(new CheckpointError([...problems].join("; ")));
  return all.map(({ result }) => result as T);
}
