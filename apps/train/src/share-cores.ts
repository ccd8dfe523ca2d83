/** Which cores a rank computes on: launchers may bind each rank to some cores, or leave all cores to all ranks. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { isObject } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { type ProcessorLimits, processorLimits } from "@terse/native-loader";
import { useThreads } from "@terse/optimizers";
import { numThreads, setNumThreads } from "@terse/tensor";
import { gatherJson } from "./gather-json.ts";

/** A rank's machine, the cores there on which it may run, and the quotas of its control groups. */
export interface Place extends ProcessorLimits {
  readonly machine: string;
}

/**
 * How many cores are this rank's, 1 or more. A core that several ranks may use counts in part for each of them, and so
 * does the quota of their container.
 */
export async function shareCores(group: Group, place: Place = placeOfProcess()): Promise<number> {
  const places = await gatherJson(group, place, isPlace);
  const near = places.filter(({ machine }) => machine === place.machine);
  const users = (uses: (other: Place) => boolean) => near.filter(uses).length;
  const ofCores = place.cores.reduce((sum, core) => sum + 1 / users(({ cores }) => cores.includes(core)), 0);
  const ofQuotas = place.quotas.map(
    ({ group, processors }) => processors / users(({ quotas }) => quotas.some((other) => other.group === group)),
  );
  return Math.max(1, Math.floor(Math.min(ofCores, ...ofQuotas) + 1e-6)); // three thirds are a little less than one
}

/** Computes with this rank's share of the cores, unless the user has said how many threads. */
export async function useSharedCores(group: Group): Promise<void> {
  const cores = await shareCores(group);
  if (!process.env["OMP_NUM_THREADS"]) setNumThreads(cores);
  useThreads(numThreads());
}

const isPlace = (value: unknown) =>
  isObject(value) &&
  Array.isArray(value["cores"]) &&
  Array.isArray(value["quotas"]) &&
  value["quotas"].every((quota) => isObject(quota) && Number(quota["processors"]) > 0);

function placeOfProcess(): Place {
  return { machine: machineName(), ...processorLimits() };
}

/** Containers of one machine share its cores, and have names of their own. */
function machineName(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return hostname(); // not Linux
  }
}
