import type { DatasetEntry } from "./dataset.ts";
import { SamplesInThread } from "./prefetch/samples-in-thread.ts";
import { SampledData } from "./sampled-data.ts";
import { type SampledName, sampledEntries } from "./sampled-entries.ts";
import { textEntry } from "./text/text-entry.ts";

export type DatasetName = "text" | SampledName;

/** The dataset of an entry's samples. */
function sampled(name: SampledName): DatasetEntry {
  const { samples, ...entry } = sampledEntries[name];
  return {
    ...entry,
    open: async (options, { thread = false, ...given }) => {
      const opened = thread ? await SamplesInThread.open(name, options, given) : await samples(options, given);
      return new SampledData(opened, given);
    },
  };
}

/** Every dataset by the name that recipes use. */
export const datasets: Readonly<Record<DatasetName, DatasetEntry>> = {
  text: textEntry,
  ...(Object.fromEntries((Object.keys(sampledEntries) as SampledName[]).map((name) => [name, sampled(name)])) as Record<
    SampledName,
    DatasetEntry
  >),
};
