/** Which cores of its machine a rank computes on, whoever has started it: launchers may bind ranks to cores, or leave all cores to all. */
import { readFileSync } from "node:fs";
import { availableParallelism, hostname } from "node:os";
import type { Group } from "@terse/collectives";
import { gatherTexts } from "./gather-texts.ts";

/** A rank's machine, and the cores there on which it may run. */
export interface Place {
  readonly machine: string;
  readonly cores: readonly number[];
}

/** The cores that are this rank's, as a whole number of 1 or more: a core that several ranks may use counts for each in part. */
export async function shareCores(group: Group, place: Place = placeOfProcess()): Promise<number> {
  const places = (await gatherTexts(group, JSON.stringify(place))).map((text) => JSON.parse(text) as Place);
  const users = new Map<number, number>(); // of each core of this machine
  for (const { machine, cores } of places)
    if (machine === place.machine) for (const core of cores) users.set(core, (users.get(core) ?? 0) + 1);
  const share = place.cores.reduce((sum, core) => sum + 1 / users.get(core)!, 0);
  return Math.max(1, Math.floor(share + 1e-6)); // three thirds are a little less than one
}

function placeOfProcess(): Place {
  const everywhere = { machine: hostname(), cores: Array.from({ length: availableParallelism() }, (_, core) => core) };
  try {
    // Containers of one machine share its cores, and have names of their own.
    const machine = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const [, list] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))!;
    return { machine, cores: coresIn(list!) };
  } catch {
    return everywhere; // not Linux
  }
}

/** The kernel's lists of cores: 0-3,8 */
function coresIn(list: string): number[] {
  return list.split(",").flatMap((range) => {
    const [from, to = from] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}
