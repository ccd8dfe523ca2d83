import type { DatasetEntry } from "./dataset.ts";
import { SamplesInThread } from "./prefetch/samples-in-thread.ts";
import { sampledData } from "./sampled-data.ts";
import { sampledEntries } from "./sampled-entries.ts";

/** The name of a dataset in recipes: "text", "tokens", "cifar10", … */
export type DatasetName = keyof typeof sampledEntries;

/** The dataset of an entry's samples. */
function sampled(name: DatasetName): DatasetEntry {
  const { samples, ...entry } = sampledEntries[name];
  return {
    ...entry,
    open: async (options, { thread = false, ...given }) => {
      const opened = thread ? await SamplesInThread.open(name, options, given) : await samples(options, given);
      return sampledData(opened, given);
    },
  };
}

/** Every dataset by the name that recipes use. */
export const datasets = Object.fromEntries(
  (Object.keys(sampledEntries) as DatasetName[]).map((name) => [name, sampled(name)]),
) as Readonly<Record<DatasetName, DatasetEntry>>;
