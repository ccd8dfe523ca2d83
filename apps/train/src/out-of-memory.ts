/** Whether the kernel has killed processes because memory was used up, by its own counters. */
import { groupFolders, readText } from "./control-group.ts";

export interface MemoryKills {
  /** Processes killed in this process's control group; undefined where the kernel does not tell. */
  readonly group: number | undefined;
  readonly machine: number | undefined;
  /** Bytes that the control group may use; undefined where it has no limit. */
  readonly limit: number | undefined;
}

/** The kernel's counters of today. `root` is another root folder, for tests. */
export function memoryKills(root = "/"): MemoryKills {
  const killsIn = (text: string | undefined) => {
    const [, count] = /^oom_kill (\d+)$/m.exec(text ?? "") ?? [];
    return count === undefined ? undefined : Number(count);
  };
  const { second, first } = groupFolders("memory", root);
  const places = [
    ...second.map((folder) => ({ folder, kills: "memory.events", limit: "memory.max" })),
    ...first.map((folder) => ({ folder, kills: "memory.oom_control", limit: "memory.limit_in_bytes" })),
  ];
  const place = places.find(({ folder, kills }) => killsIn(readText(folder, kills)) !== undefined);
  const limit = place && Number(readText(place.folder, place.limit)); // NaN: "max"
  return {
    group: place && killsIn(readText(place.folder, place.kills)),
    machine: killsIn(readText(root, "proc/vmstat")),
    // Version 1 of control groups writes almost 2⁶³ where there is no limit.
    limit: limit !== undefined && limit < 2 ** 60 ? limit : undefined,
  };
}

/** Why a process got SIGKILL, where the counters say that it was for memory; undefined otherwise. */
export function killedForMemory(before: MemoryKills, after: MemoryKills): string | undefined {
  const limit = after.limit === undefined ? "" : `, whose limit is ${Math.round(after.limit / 2 ** 20)} MiB,`;
  const remedy = "take a smaller data.batchSize or a smaller model, or start fewer ranks on this machine";
  if (more(before.group, after.group))
    return `the kernel killed it because the memory of its control group${limit} was used up; ${remedy}`;
  if (more(before.machine, after.machine))
    return `probably the kernel killed it because the memory of this machine was used up; ${remedy}`;
  return undefined;
}

const more = (before: number | undefined, after: number | undefined) =>
  before !== undefined && after !== undefined && after > before;
