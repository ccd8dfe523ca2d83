import { type Group, loopback } from "@terse/collectives";

/** For tests: the same task on every rank of a world in this process. */
export async function onRanks<T>(size: number, task: (group: Group) => Promise<T>): Promise<T[]> {
  const groups = loopback(size);
  try {
    return await Promise.all(groups.map(task));
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}
