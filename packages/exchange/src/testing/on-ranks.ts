/** For tests: runs the same task on every rank of a loopback world. */
import { type Group, loopback } from "@terse/collectives";

export async function onRanks<T>(size: number, task: (group: Group) => Promise<T>): Promise<T[]> {
  const groups = loopback(size);
  try {
    return await Promise.all(groups.map(task));
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}
