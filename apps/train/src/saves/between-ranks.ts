/** Texts between ranks, and work that succeeds on all ranks or on none. */
import { CheckpointError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { sentence } from "../failure.ts";

/** The text of each rank. */
async function gatherTexts(group: Group, text: string): Promise<string[]> {
  const mine = new TextEncoder().encode(text);
  const lengths = Array.from({ length: group.size }, () => Float64Array.of(mine.length));
  await group.allGather(lengths);
  const texts = lengths.map(([length], rank) => (rank === group.rank ? mine : new Uint8Array(length!)));
  await group.allGather(texts);
  return texts.map((bytes) => new TextDecoder().decode(bytes));
}

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
  if (problems.size > 0) throw new CheckpointError([...problems].join("; "));
  return all.map(({ result }) => result as T);
}
