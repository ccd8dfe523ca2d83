/** A rank that the launcher has started: its process, its output, and how it ended. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { printable } from "@terse/options";
import type { AppendedFile } from "../appended-file.ts";
import { sentence } from "../failure.ts";
import { killedForMemory, type MemoryKills, memoryKills } from "../out-of-memory.ts";
import { abortedForThreads, type Refusals, refusals } from "../out-of-threads.ts";
import type { ToLauncher } from "../to-launcher.ts";
import { logFile, openLog } from "./log-files.ts";

/** How a rank ended that did not end well; JSON, because launchers tell each other. */
export interface Failure {
  readonly rank: number;
  readonly host: string;
  /** When it reported its error, or else ended: milliseconds since 1970. */
  readonly time?: number;
  readonly code?: number;
  readonly signal?: NodeJS.Signals;
  /** The error that it reported itself. */
  readonly error?: { readonly name: string; readonly message: string };
  /** The launcher ended it, because another rank had failed. */
  readonly stopped: boolean;
  /** Why it ended by a signal, where that is known. */
  readonly why?: string | undefined;
  readonly lastLines: readonly string[]; // of its output
  readonly log?: string; // file
}

export interface RankOptions {
  readonly rank: number;
  readonly argv: readonly string[]; // of `./terse`
  readonly env: NodeJS.ProcessEnv;
  readonly logs: { readonly folder: string; readonly attempt: number } | undefined;
  readonly heard: (message: ToLauncher) => void;
}

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const linesKept = 40; // with the backtrace that Node prints when it ends itself

export class RankProcess {
  readonly rank: number;
  /** Resolves when the process has ended: to undefined, or to how it failed. Never rejects. */
  readonly ended: Promise<Failure | undefined>;
  readonly #child: ChildProcess;
  readonly #log: { readonly path: string; readonly file: AppendedFile } | undefined;
  readonly #before: MemoryKills = memoryKills();
  readonly #refusedBefore: Refusals = refusals();
  readonly #lastLines: string[] = [];
  #error: Failure["error"];
  #time: number | undefined;
  #isStopped = false;

  constructor({ rank, argv, env, logs, heard }: RankOptions) {
    this.rank = rank;
    if (logs) {
      const file = openLog(logs.folder, logs.attempt, rank);
      this.#log = { path: logFile(logs.folder, logs.attempt, rank), file };
    }
    // Without a log rank 0 has the terminal itself. A closed IPC channel ends a rank that has lost its launcher.
    const direct = rank === 0 && logs === undefined;
    this.#child = spawn(process.execPath, [...process.execArgv, main, ...argv], {
      env,
      stdio: ["ignore", direct ? "inherit" : "pipe", "pipe", "ipc"],
    });
    const prefix = `[rank ${rank}] `;
    if (this.#child.stdout) this.#pass(this.#child.stdout, process.stdout, rank === 0 ? "" : prefix);
    // Where no process could be started there are no streams either; `ended` says why.
    if (this.#child.stderr) this.#pass(this.#child.stderr, process.stderr, prefix);
    this.#child.on("message", (message: ToLauncher) => {
      if (message.failed) {
        this.#error = message.failed;
        this.#time ??= Date.now();
      }
      heard(message);
    });
    this.ended = this.#end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it because another rank has failed. */
  stop(signal: NodeJS.Signals): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#isStopped = true;
    this.#child.kill(signal);
  }

  /** Kills it, for this reason, unless it has reported another one. */
  end(message: string): void {
    this.#error ??= { name: "Error", message };
    this.#child.kill("SIGKILL");
  }

  async #end(): Promise<Failure | undefined> {
    try {
      const [code, signal] = (await once(this.#child, "close")) as [number | null, NodeJS.Signals | null];
      if (code === 0) return undefined;
      return this.#failure(code === null ? { signal: signal! } : { code });
    } catch (error) {
      const message = `rank ${this.rank} could not be started: ${sentence(error)}`;
      this.#error ??= { name: "Error", message };
      return this.#failure({ code: 1 });
    } finally {
      this.#log?.file[Symbol.dispose]();
    }
  }

  #failure(how: { code: number } | { signal: NodeJS.Signals }): Failure {
    const signal = "signal" in how && !this.#isStopped ? how.signal : undefined;
    return {
      rank: this.rank,
      host: hostname(),
      time: this.#time ?? Date.now(),
      ...how,
      ...(this.#error && { error: this.#error }),
      stopped: this.#isStopped,
      why: this.#why(signal),
      lastLines: this.#lastLines,
      ...(this.#log && { log: this.#log.path }),
    };
  }

  /** Why the kernel, or Node itself, ended it by a signal. */
  #why(signal: NodeJS.Signals | undefined): string | undefined {
    if (signal === "SIGKILL") return killedForMemory(this.#before, memoryKills());
    // Node and libuv abort where they cannot start a thread, and libuv says nothing.
    if (signal === "SIGABRT") return abortedForThreads(this.#refusedBefore, refusals());
    return undefined;
  }

  #pass(from: NodeJS.ReadableStream, to: NodeJS.WriteStream, prefix: string): void {
    createInterface({ input: from }).on("line", (given) => {
      const line = printable(given); // a rank has no terminal here, so these are no colours of ours
      this.#lastLines.push(line);
      if (this.#lastLines.length > linesKept) this.#lastLines.shift();
      this.#log?.file.append(`${line}\n`);
      to.write(`${prefix}${line}\n`);
    });
  }
}
