/**
 * `recovery`: how long a training stands still when a rank is killed. gpt-small trains with two ranks, and
 * saves every 10 steps.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Measurement } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";
import { main } from "./trained.ts";

const kills = 3;
const between = 12; // steps from a start to a kill: at least one save

/**
 * `recovery_seconds` is the longest time of all kills, from SIGKILL to the end of the first step that is taken
 * afterwards.
 */
export async function* recovery({ overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  using above = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const steps = between * (kills + 2);
  const own = ["save.every=10", "logEvery=1", "advise=false", `steps=${steps}`, ...overrides];
  const flags = [`--max-restarts=${kills}`, "--out", join(above.path, "run"), ...own.map((each) => `--${each}`)];
  const launcher = spawn(
    process.execPath,
    [...process.execArgv, main, "train", "gpt-small", "--nproc-per-node=2", ...flags],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const ended = once(launcher, "exit") as Promise<[number | null]>;
  const times: number[] = [];
  let killedAt: number | undefined;
  let attempts = 0; // whose first line has come
  let taken = 0; // steps of this attempt
  for await (const line of createInterface({ input: launcher.stdout })) {
    if (line.startsWith("model ")) {
      attempts++;
      taken = 0;
    }
    if (!/^step: \d+\//.test(line)) continue;
    taken++;
    if (killedAt !== undefined && attempts === times.length + 2) {
      times.push((performance.now() - killedAt) / 1000);
      process.stderr.write(`recovery: kill ${times.length} of ${kills}\n`);
      killedAt = undefined;
    }
    if (killedAt === undefined && taken === between && times.length < kills) {
      killedAt = performance.now();
      process.kill(rankOne(launcher.pid!), "SIGKILL");
    }
  }
  const [code] = await ended;
  if (code !== 0 || times.length !== kills) throw new Error("the training has not recovered; its error is above");
  const inCase = { case: "recovery ×2" };
  for (const seconds of times) yield { ...inCase, metric: "recovery", value: seconds, unit: "s" };
  yield { ...inCase, metric: "recovery_seconds", value: Math.max(...times), unit: "s" };
}

/** The process of rank 1 among the children of a launcher. */
function rankOne(launcher: number): number {
  const pids = readFileSync(`/proc/${launcher}/task/${launcher}/children`, "utf8").trim().split(" ");
  const found = pids.find((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes("RANK=1"));
  if (found === undefined) throw new Error("the launcher has no rank 1");
  return Number(found);
}
