/** How many runs a machine takes side by side. */
import { availableProcessors } from "@terse/native-loader";

/** Of a rank's process without its model: Node, libtorch and their libraries. */
const bytesOfProcess = 400e6;

export interface Machine {
  readonly cores: number;
  readonly freeBytes: number;
}

export const thisMachine = (): Machine => ({
  cores: availableProcessors(),
  freeBytes: process.availableMemory(),
});

/**
 * A core for each rank, and half of the free memory: a dry run counts no activations, and they need the other half. 1
 * at least. 1 where any run has a GPU, because its memory is not known here.
 */
export function defaultJobs(
  { ranks, bytesPerRank, hasGpu }: { ranks: number; bytesPerRank: number; hasGpu: boolean },
  { cores, freeBytes }: Machine,
): number {
  if (hasGpu) return 1;
  const byCores = Math.floor(cores / ranks);
  const byMemory = Math.floor(freeBytes / 2 / (ranks * (bytesPerRank + bytesOfProcess)));
  return Math.max(1, Math.min(byCores, byMemory));
}

/** The threads of a rank that leave the other runs their cores; undefined where a run has the machine alone. */
export function threadsOf(jobs: number, ranks: number, { cores }: Machine): number | undefined {
  return jobs === 1 ? undefined : Math.max(1, Math.floor(cores / (jobs * ranks)));
}
