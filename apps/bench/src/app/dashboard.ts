/**
 * `dashboard`: what the live page costs a training on the same machine. The default recipe trains with two ranks, and logs every step.
 * During every other block of steps its page is there, with a reader that takes all that it sends. A browser elsewhere costs no more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openPage } from "@terse/page/open-page";
import { type Measurement, median } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";

const blocks = 16;
const stepsPerBlock = 25;
const warmUp = 10; // steps

/** `dashboard_cost` is the median time of a step with the page, divided by that without. */
export async function* dashboard({ overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  const above = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const folder = join(above, "run");
  const training = startTraining(folder, overrides);
  try {
    const times = new StepTimes(folder, training);
    await times.next(warmUp);
    const steps = { without: [] as number[], with: [] as number[] };
    for (let block = 0; block < blocks; block++) {
      // In the order ABBA, so that slow changes of the machine affect both alike.
      if (block % 4 === 0 || block % 4 === 3) steps.without.push(...(await times.next(stepsPerBlock)));
      else {
        await using _page = await openedPage(folder);
        await times.next(1); // the step in which it was opened
        steps.with.push(...(await times.next(stepsPerBlock)));
      }
      process.stderr.write(`dashboard: block ${block + 1} of ${blocks}\n`);
      await times.next(1); // the step in which it was closed
    }
    const inCase = { case: "dashboard ×2" };
    const [without, during] = [median(steps.without), median(steps.with)];
    yield { ...inCase, metric: "step_without", value: 1000 * without, unit: "ms" };
    yield { ...inCase, metric: "step_with", value: 1000 * during, unit: "ms" };
    yield { ...inCase, metric: "dashboard_cost", value: during / without, unit: "ratio" };
  } finally {
    training.kill("SIGINT");
    training.kill("SIGINT"); // at once, without a save
    if (training.exitCode === null) await once(training, "exit");
    rmSync(above, { recursive: true, force: true, maxRetries: 5 });
  }
}

function startTraining(folder: string, overrides: readonly string[]): ChildProcess {
  const main = fileURLToPath(new URL("../../../train/src/main.ts", import.meta.url));
  const recipe = ["steps=100000", "logEvery=1", "evaluate.every=0", "compareEvery=0", ...overrides].map(
    (each) => `--${each}`,
  );
  return spawn(
    process.execPath,
    [...process.execArgv, main, "train", "--nproc-per-node=2", "--out", folder, ...recipe],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
}

/** The page, and a reader of its stream. */
async function openedPage(folder: string): Promise<AsyncDisposable> {
  const opened = Promise.withResolvers<string>();
  const page = openPage(folder, { host: "127.0.0.1", port: 0 }, { note: opened.resolve });
  const line = await opened.promise;
  const [, url] = /^page (\S+)$/.exec(line) ?? [];
  if (url === undefined) throw new Error(line);
  const stream = await fetch(`${url}events`);
  const read = stream.body!.pipeTo(new WritableStream());
  return {
    async [Symbol.asyncDispose]() {
      page[Symbol.dispose]();
      await read.catch(() => {}); // the page is gone
    },
  };
}

/** Times of steps, as metrics.jsonl says them. */
class StepTimes {
  readonly #file: string;
  readonly #training: ChildProcess;

  constructor(folder: string, training: ChildProcess) {
    this.#file = join(folder, "metrics.jsonl");
    this.#training = training;
  }

  /** Those of the next steps, in seconds. */
  async next(count: number): Promise<number[]> {
    const known = this.#all().length;
    for (;;) {
      const all = this.#all();
      if (all.length >= known + count) return all.slice(known, known + count);
      if (this.#training.exitCode !== null) throw new Error("the training has ended; its error is above");
      await sleep(100);
    }
  }

  #all(): number[] {
    let text = "";
    try {
      text = readFileSync(this.#file, "utf8");
    } catch {
      // it is not there yet
    }
    return text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .filter((line) => line.includes('"step_seconds"'))
      .map((line) => (JSON.parse(line) as { step_seconds: number }).step_seconds);
  }
}
