import { beforeEach } from "vitest";
import { workerTitle } from "./processes.ts";

// `ps` and hang-guard.ts see what a worker runs, also while its thread is blocked. SIGUSR1 debugs on any free port.
process.debugPort = 0;
beforeEach(({ task }) => {
  process.title = `${workerTitle(task.file.filepath)}: ${task.name}`;
});
