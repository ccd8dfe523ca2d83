import { setTimeout as delay } from "node:timers/promises";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { describeProcess, type Process, processesWith, workerTitle } from "./processes.ts";

/**
 * Seconds without a result after which a file hangs: more than vitest's limit of one test, which needs a free
 * JavaScript thread.
 */
const patience = Number(process.env["TERSE_TEST_PATIENCE"] ?? 900);
/** Seconds after which a file hangs although it has results: many of its tests run into vitest's limit. */
const longest = 1800;
const mark = "TERSE_TEST_RUN";

/**
 * Ends what hangs, says what it was doing, and makes the run fail. It ends a test file whose thread is blocked, where
 * vitest's own limits do not work. It also ends processes that outlive their tests and hold the output open, for which
 * vitest would wait for ever.
 */
export default class HangGuard implements Reporter {
  #vitest: Vitest | undefined;
  #running = new Map<string, { started: number; lastResult: number }>(); // milliseconds since the epoch
  #ended = Number.POSITIVE_INFINITY;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
    process.env[mark] = String(process.pid);
    void this.#watch();
  }

  onTestModuleQueued(module: TestModule): void {
    this.#running.set(module.moduleId, { started: Date.now(), lastResult: Date.now() });
  }

  onTestCaseResult({ module }: TestCase): void {
    const file = this.#running.get(module.moduleId);
    if (file) file.lastResult = Date.now();
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.moduleId);
  }

  onTestRunEnd(): void {
    this.#running.clear();
    this.#ended = Date.now();
  }

  async #watch(): Promise<never> {
    for (;;) {
      await delay(Math.min(10, patience) * 1000, undefined, { ref: false });
      const now = Date.now();
      for (const [file, { started, lastResult }] of this.#running) {
        const silent = lastResult <= now - patience * 1000;
        if (!silent && started > now - longest * 1000) continue;
        this.#running.delete(file);
        const reason = `${file} has ${silent ? `had no result for ${patience} s` : `not ended after ${longest} s`}`;
        this.#vitest?.state.catchError(new Error(reason), "Hang");
        await end(reason, ({ command }) => command.startsWith(workerTitle(file)));
      }
      if (this.#ended > now - patience * 1000) continue;
      this.#ended = now;
      process.exitCode = 1;
      await end(`${patience} s after the last test, processes that tests have started still run`, () => true);
    }
  }
}

/** Ends the processes of this run that are chosen, and all processes below them. */
async function end(reason: string, chosen: (process: Process) => boolean): Promise<void> {
  const all = processesWith(`${mark}=${process.pid}`);
  const ended = new Set(all.filter(chosen));
  // A set visits what is added while it is walked.
  for (const { pid } of ended) for (const child of all) if (child.parent === pid) ended.add(child);
  const descriptions = await Promise.all([...ended].map(describeProcess));
  process.stderr.write(`\nHANGS: ${[reason, ...descriptions].join("\n")}\n\n`);
  for (const { pid } of ended) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has ended
    }
  }
}
