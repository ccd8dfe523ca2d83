/** The thread that writes the files of saves (thread-writer.ts). */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { CheckpointError } from "@terse/checkpoint";
import { sentence } from "../failure.ts";
import { NotFiniteError, writeFiles } from "./save-files.ts";
import { type Answer, memoryOf, type Request } from "./thread-writer.ts";

// Steps have their processors first. Elsewhere than on Linux this would be the priority of the whole process.
if (process.platform === "linux") setPriority(19);

/** The thread's share of a processor while nobody waits for the save: a step beside it is longer by about as much. */
const share = 1 / 60;
// Milliseconds after a mebibyte: where the disk or the processors are slow, a save is not slower still.
const longestPause = 75;

/** Pauses after each part as long as keeps to `share`, until the first element of `waits` is 1. */
function paceOf(waits: Int32Array): () => void {
  let before = performance.now();
  return () => {
    const took = performance.now() - before;
    Atomics.wait(waits, 0, 0, Math.min(took * (1 / share - 1), longestPause));
    before = performance.now();
  };
}

async function answerTo({ folder, files, waits }: Request): Promise<Answer> {
  try {
    return { files, written: await writeFiles(folder, files, paceOf(waits)) };
  } catch (error) {
    const kind =
      error instanceof NotFiniteError ? "not finite" : error instanceof CheckpointError ? "checkpoint" : "other";
    return { files, problem: sentence(error), kind };
  }
}

parentPort!.on("message", async (request: Request) => {
  const answer = await answerTo(request);
  parentPort!.postMessage(answer, memoryOf(answer.files));
});
