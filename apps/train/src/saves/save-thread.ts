/** The thread that writes the files of saves (thread-writer.ts). */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { CheckpointError } from "@terse/checkpoint";
import { sentence } from "../failure.ts";
import { NotFiniteError, writeFiles } from "./save-files.ts";
import { type Answer, memoryOf, type Request } from "./thread-writer.ts";

// Steps have their processors first. Elsewhere than on Linux this would be the priority of the whole process.
if (process.platform === "linux") setPriority(19);

async function answerTo({ folder, files }: Request): Promise<Answer> {
  try {
    return { files, written: await writeFiles(folder, files) };
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
