/** The thread that reads and augments samples: opens them, then makes batches of the rows that it is asked for. */
import { parentPort, workerData } from "node:worker_threads";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { sampledEntries } from "../sampled-entries.ts";
import type { Samples } from "../samples.ts";
import type { Answer, Request, ThreadData } from "./messages.ts";

const { name, options, given } = workerData as ThreadData;

const answer = (content: Answer, transfer: ArrayBuffer[] = []) => parentPort!.postMessage(content, transfer);

async function answering(id: number, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const ofData = error instanceof DataError;
    answer({ id, ofData, problem: ofData ? error.message : String((error as Error).stack ?? error) });
  }
}

let samples: Samples;
let told = 0; // of the skipped samples

function newlySkipped(): readonly string[] {
  const skipped = (samples.skipped ?? []).slice(told);
  told += skipped.length;
  return skipped;
}

await answering(0, async () => {
  const entries: Readonly<Record<string, SampledEntry>> = sampledEntries;
  const progress = (words: string) => answer({ id: 0, progress: words });
  samples = await entries[name]!.samples(options, { ...given, progress });
  answer({ id: 0, facts: samples.facts, skipped: newlySkipped() });
});

parentPort!.on("message", (request: Request) =>
  answering(request.id, async () => {
    const arrays =
      "training" in request ? await samples.training(request.training) : await samples.validation(request.validation);
    const buffers = Object.values(arrays).map(({ data }) => data.buffer as ArrayBuffer);
    answer({ id: request.id, arrays, skipped: newlySkipped() }, buffers);
  }),
);
