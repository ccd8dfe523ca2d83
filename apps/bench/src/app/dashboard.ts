/**
 * `dashboard`: what the live page costs a training on the same machine. gpt-small trains with two ranks, and
 * logs every step. During every other block of steps its page is there, with a reader that takes all that it sends; a
 * browser is elsewhere.
 */
import { existsSync, mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openPage } from "@terse/page/open-page";
import { type Measurement, median } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";
import { stepsOf, trained } from "./trained.ts";

const warmUp = 10; // steps
const stepsPerBlock = 20;
const between = 10; // steps, at most, while the page is opened
const turns = ["without", "with", "with", "without"] as const; // so that slow changes of the machine affect both alike
const blocks = [...turns, ...turns, ...turns];

/** `dashboard_cost` is the median time of a step with the page, divided by that without. */
export async function* dashboard({ overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  using above = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const folder = join(above.path, "run");
  const times = { without: [] as number[], with: [] as number[] };
  const steps = warmUp + blocks.length * (stepsPerBlock + between);
  let isOver = false;
  const training = trained(folder, [
    "gpt-small",
    `--steps=${steps}`,
    "--advise=false",
    ...overrides.map((each) => `--${each}`),
  ]);
  const over = training.finally(() => {
    isOver = true;
  });
  over.catch(() => {}); // it is awaited below
  const next = async (count: number) => {
    const known = timesIn(folder).length;
    while (timesIn(folder).length < known + count) {
      if (isOver) throw new Error("the training ended before the page had been measured");
      await Promise.race([over, sleep(100)]);
    }
    return timesIn(folder).slice(known, known + count);
  };
  await next(warmUp);
  for (const [i, turn] of blocks.entries()) {
    const page = turn === "with" ? await openedPage(folder) : undefined;
    await next(1); // the step in which it was opened, or the one before was closed
    times[turn].push(...(await next(stepsPerBlock)));
    await page?.[Symbol.asyncDispose]();
    process.stderr.write(`dashboard: block ${i + 1} of ${blocks.length}\n`);
  }
  await over;
  const inCase = { case: "dashboard ×2" };
  const [without, during] = [median(times.without), median(times.with)];
  yield { ...inCase, metric: "step_without", value: 1000 * without, unit: "ms" };
  yield { ...inCase, metric: "step_with", value: 1000 * during, unit: "ms" };
  yield { ...inCase, metric: "dashboard_cost", value: during / without, unit: "ratio" };
}

/** The page, and a reader of its stream. */
async function openedPage(folder: string): Promise<AsyncDisposable> {
  const opened = Promise.withResolvers<string>();
  const page = openPage(folder, { host: "127.0.0.1", port: 0 }, { note: opened.resolve });
  const line = await opened.promise;
  const [, url] = /^page (\S+)$/.exec(line) ?? [];
  if (url === undefined) throw new Error(line);
  const { body } = await fetch(`${url}events`);
  const read = body!.pipeTo(new WritableStream());
  return {
    async [Symbol.asyncDispose]() {
      page[Symbol.dispose]();
      await read.catch(() => {}); // the page is gone
    },
  };
}

/** Seconds of the steps that have been logged. */
function timesIn(folder: string): number[] {
  return existsSync(join(folder, "metrics.jsonl")) ? stepsOf(folder).map(({ step_seconds }) => step_seconds) : [];
}
