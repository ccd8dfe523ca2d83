/** A run of a sweep: `./terse train` in a process of its own, with a log. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { printable } from "@terse/options";
import { AppendedFile } from "../appended-file.ts";
import { endsWithStdin } from "../launcher/end-with-stdin.ts";
import { baseRecipeFile } from "./sweep-folder.ts";
import { overridesOf, type PlannedRun, type SweepPlan } from "./sweep-plan.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const linesKept = 10;

export interface RunProcessOptions {
  readonly folder: string; // of the sweep
  readonly plan: SweepPlan;
  readonly threads: number | undefined; // of a rank
  readonly say: (text: string) => void;
}

export class RunProcess {
  readonly run: PlannedRun;
  /** Resolves to the exit code, as shells count it, when the process has ended. Never rejects. */
  readonly ended: Promise<number>;
  readonly began: number = performance.now();
  /** Steps that were taken before this process, and are taken now, of all; undefined before the first line. */
  steps: { readonly first: number; readonly done: number; readonly of: number } | undefined;
  readonly #child: ChildProcess;
  readonly #log: AppendedFile;
  readonly #lastLines: string[] = [];

  constructor(run: PlannedRun, { folder, plan, threads, say }: RunProcessOptions) {
    this.run = run;
    this.#log = new AppendedFile({ path: join(folder, `${run.name}.log`), piece: "line", say });
    const argv = [
      "train",
      `--recipe=${join(folder, baseRecipeFile)}`,
      ...plan.flags,
      `--nproc-per-node=${plan.ranks}`,
      `--out=${join(folder, run.name)}`,
      "--resume=auto",
      ...overridesOf(plan, run).map((override) => `--${override}`),
    ];
    const { OMP_NUM_THREADS = threads === undefined ? undefined : String(threads), ...env } = process.env;
    // In a group of its own: a terminal's Ctrl-C reaches the sweep alone, which forwards it once. Its standard input
    // tells it where the sweep was killed.
    this.#child = spawn(process.execPath, [...process.execArgv, main, ...argv], {
      env: { ...env, ...(OMP_NUM_THREADS !== undefined && { OMP_NUM_THREADS }), [endsWithStdin]: "1" },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      ...(existsSync(plan.directory) && { cwd: plan.directory }),
    });
    for (const stream of [this.#child.stdout, this.#child.stderr].filter((each) => each !== null))
      createInterface({ input: stream }).on("line", (line) => this.#heard(printable(line)));
    this.ended = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        this.#heard(`the run could not be started: ${error.message}`);
        resolve(1);
      });
      this.#child.on("close", (code, signal) => resolve(code ?? (signal === "SIGKILL" ? 137 : 143)));
    });
    void this.ended.then(() => this.#log[Symbol.dispose]());
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** What it has printed last, without the lines of steps and the advice of how to go on. */
  get lastLines(): readonly string[] {
    const lines = this.#lastLines.filter((line) => !/^(step: \d+\/|resume: )/.test(line));
    return lines.length > 0 ? lines : this.#lastLines;
  }

  #heard(line: string): void {
    this.#log.append(`${line}\n`);
    this.#lastLines.push(line);
    if (this.#lastLines.length > linesKept) this.#lastLines.shift();
    const [, done, of] = /^step: (\d+)\/(\d+)\b/.exec(line) ?? [];
    if (done === undefined) return;
    // The line comes after the step: what was there before is not known better than to a step.
    this.steps = { first: this.steps?.first ?? Number(done) - 1, done: Number(done), of: Number(of) };
  }
}
