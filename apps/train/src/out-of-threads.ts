/** Whether the control group of this process has refused a process or a thread, by the kernel's own counter. */
import { groupFolders, readText } from "./control-group.ts";

export interface Refusals {
  /** How often the group has refused one; undefined where the kernel does not tell. */
  readonly count: number | undefined;
  readonly limit: number | undefined; // processes and threads; undefined where it is that of a group above
}

/** The kernel's counter of today. `root` is another root folder, for tests. */
export function refusals(root = "/"): Refusals {
  const countIn = (folder: string) => /^max (\d+)$/m.exec(readText(folder, "pids.events") ?? "")?.[1];
  const { second, first } = groupFolders("pids", root);
  const folder = [...second, ...first].find((each) => countIn(each) !== undefined);
  if (folder === undefined) return { count: undefined, limit: undefined };
  const limit = Number(readText(folder, "pids.max")); // NaN: "max"
  return { count: Number(countIn(folder)), limit: Number.isNaN(limit) ? undefined : limit };
}

/** Why a process has aborted, where the counter says that it was for want of a thread; undefined otherwise. */
export function abortedForThreads(before: Refusals, after: Refusals): string | undefined {
  if (before.count === undefined || after.count === undefined || after.count <= before.count) return undefined;
  const limit = after.limit === undefined ? "" : `, ${after.limit},`;
  return `a thread could not be started, because the most processes and threads that its control group may have${limit} are there; raise that limit (pids.max, docker run --pids-limit), or start fewer ranks on this machine`;
}
