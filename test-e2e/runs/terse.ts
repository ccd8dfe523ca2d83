/** Runs `./terse` as users do, in a folder with a text that a tiny model learns in a few steps. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";

export const main: string = fileURLToPath(new URL("../../apps/train/src/main.ts", import.meta.url));

export interface Outcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** A new folder, which is removed when the tests of the file have ended, with the text in it. */
export function trainingFolder(name: string): { folder: string; text: string } {
  const folder = mkdtempSync(join(tmpdir(), `terse-${name}-`));
  const text = join(folder, "text.txt");
  writeFileSync(text, "the quick brown fox jumps over the lazy dog. ".repeat(2000));
  // A rank whose launcher was killed may write its last file at this moment: removed again.
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return { folder, text };
}

/** Arguments of a small training that takes a second or two, with one bit from the first step. */
export const tinyTraining = (text: string): string[] => [
  "train",
  "--recipe=gpt-small-lion-cub",
  "--model.preset=nano",
  "--data",
  text,
  "--evaluate.windows=8",
  "--logEvery=1",
  "--sample.bytes=20",
  "--schedule.warmup=2",
  "--advise=false", // it measures network and codecs at the end, which takes most of a minute on a busy machine
];

/**
 * Runs `./terse …` as a process in a folder; calls `during` with an empty line at the start, and then with every line
 * of its output.
 */
export function terseIn(
  folder: string,
  args: readonly string[],
  during?: (line: string, pid: number) => void,
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return outcomeOf([process.execPath, ...nodeFlags, main, ...args], folder, during, env);
}

/** Runs any program, as `terseIn` runs ./terse. */
export function outcomeOf(
  [program, ...args]: readonly string[],
  folder: string,
  during?: (line: string, pid: number) => void,
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program!, args, { cwd: folder, env: { ...process.env, OMP_NUM_THREADS: "1", ...env } });
    let [out, err] = ["", ""];
    during?.("", child.pid!);
    child.stdout.on("data", (data: Buffer) => {
      out += data;
      for (const line of data.toString().split("\n")) during?.(line, child.pid!);
    });
    child.stderr.on("data", (data: Buffer) => {
      err += data;
    });
    child.on("close", (code, signal) => resolve({ code, signal, out, err }));
  });
}

export const lastLine = (printed: string): string | undefined => printed.trimEnd().split("\n").at(-1);

/** The child processes of a process. */
export const children = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");

/** The process of a rank that this launcher has started; undefined where it has ended, or is not started yet. */
export function rankOf(launcher: number, rank: number): number | undefined {
  const isIt = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`RANK=${rank}`);
    } catch {
      return false; // it has ended
    }
  };
  const pid = children(launcher).find(isIt);
  return pid === undefined ? undefined : Number(pid);
}

/** Waits until `holds`, for as long as a busy machine may take; throws after two minutes. */
export async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 120_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not true after two minutes: ${holds}`);
    await sleep(50);
  }
}
