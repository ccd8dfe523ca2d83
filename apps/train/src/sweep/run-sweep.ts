/** Runs what is left of a sweep, several runs side by side, and says how far it is. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { columnsOf, fitted, printable, printableLine } from "@terse/options";
import { AppendedFile } from "../appended-file.ts";
import { durationText } from "../format.ts";
import { exitCodeOf, onSignals, type Signal } from "../interruption.ts";
import { MovingLine } from "../moving-line.ts";
import { runningHolder } from "../saves/folder-lock.ts";
import { RunProcess } from "./run-process.ts";
import { endedPath, finishedRuns } from "./sweep-folder.ts";
import type { PlannedRun, SweepPlan } from "./sweep-plan.ts";
import { timeLeft } from "./time-left.ts";

export interface SweepOutcome {
  /** The runs that failed, with their exit codes. */
  readonly failed: readonly { readonly run: PlannedRun; readonly code: number }[];
  /** The exit code of the signal that ended the sweep. */
  readonly interrupted: number | undefined;
}

export interface RunSweepOptions {
  readonly jobs: number;
  readonly threads: number | undefined;
  /** Where progress is printed. */
  readonly out: NodeJS.WriteStream;
}

/** Resolves when all runs have ended, or after a signal. */
export async function runSweep(
  folder: string,
  plan: SweepPlan,
  { jobs, threads, out }: RunSweepOptions,
): Promise<SweepOutcome> {
  const finished = finishedRuns(folder);
  const waiting = plan.runs.filter(({ name }) => !finished.has(name));
  const running = new Set<RunProcess>();
  const seconds: number[] = []; // of the runs that this process has ended, and begun
  const failed: { run: PlannedRun; code: number }[] = [];
  let signal: Signal | undefined;
  const line = new MovingLine(out);
  const say = (text: string) => line.say(printable(text));
  using ended = new AppendedFile({ path: endedPath(folder), piece: "line", say });
  const count = () => `${plan.runs.length - waiting.length - running.size}/${plan.runs.length} runs`;
  const left = () => {
    const times = [...running].map(({ began, steps }) => ({ seconds: (performance.now() - began) / 1000, steps }));
    const found = timeLeft({ ended: seconds, running: times, waiting: waiting.length }, jobs);
    const isOver = running.size + waiting.length === 0;
    return found === undefined || isOver ? "" : `, ${durationText(found)} left`;
  };
  const forward = (name: Signal) => {
    if (signal === undefined) say(`${name}: the runs save and end; a second signal ends them at once`);
    signal ??= name;
    for (const each of running) each.kill(name);
  };
  const closed = ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE" && signal === undefined) forward("SIGTERM");
  };
  using _ = onSignals(forward);
  process.stdout.on("error", closed);
  const timer = setInterval(() => {
    const text = printableLine(`${count()}, ${running.size} under way${left()}`);
    line.show(fitted(text, columnsOf(out) - 1));
  }, 1000);

  /** A run whose sweep was killed saves and ends by itself, which takes a moment. */
  const isFree = async (run: PlannedRun) => {
    for (let waits = false; signal === undefined; waits = true) {
      const holder = runningHolder(join(folder, run.name));
      if (holder === undefined) return true;
      if (!waits) say(`${run.name} is still used by process ${holder.pid}: waits until that has ended`);
      await sleep(200);
    }
    return false;
  };
  const one = async (run: PlannedRun) => {
    const goesOn = existsSync(join(folder, run.name));
    if (!(await isFree(run))) return;
    say(`${run.name} ${goesOn ? "goes on" : "begins"}`);
    const child = new RunProcess(run, { folder, plan, threads, say });
    running.add(child);
    const code = await child.ended;
    running.delete(child);
    const took = (performance.now() - child.began) / 1000;
    if (code !== 0 && signal !== undefined) return; // it has been saved
    ended.append(`${JSON.stringify({ run: run.name, code, seconds: took })}\n`);
    if (code === 0) {
      if (!goesOn) seconds.push(took);
      say(`${run.name} has ended after ${durationText(took)}: ${count()}${left()}`);
      return;
    }
    failed.push({ run, code });
    say(`${run.name} failed with exit code ${code}; the others go on. Its last lines, of ${run.name}.log:`);
    for (const each of child.lastLines) say(`  ${each}`);
  };
  const worker = async () => {
    for (let run = waiting.shift(); run !== undefined && signal === undefined; run = waiting.shift()) await one(run);
  };
  try {
    if (finished.size > 0) say(`${finished.size} of ${plan.runs.length} runs have ended before, and stay`);
    await Promise.all(Array.from({ length: jobs }, worker));
  } finally {
    clearInterval(timer);
    line.show("");
    process.stdout.off("error", closed);
  }
  return { failed, interrupted: signal === undefined ? undefined : exitCodeOf(signal) };
}
