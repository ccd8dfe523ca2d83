/**
 * Starts the ranks of this machine, runs their rendezvous, and ends them all when one fails. Ranks get torchrun's environment
 * variables.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { availableParallelism, constants } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type RendezvousServer, serveRendezvous } from "@terse/collectives";
import type { TrainArguments } from "./arguments.ts";
import { isInterruption } from "./interruption.ts";
import { killedForMemory, type MemoryKills, memoryKills } from "./out-of-memory.ts";
import { recipeFor } from "./recipe-for.ts";
import { offerResume } from "./saves/resume-command.ts";

/** Milliseconds that ranks have to end by themselves after one has failed, and after SIGTERM. */
const grace = { afterFailure: 10_000, afterSignal: 5_000 };

interface Rank {
  readonly rank: number;
  readonly child: ChildProcess;
  failed?: { name: string; message: string };
  lastLines: string[]; // of its output
  code?: number;
  signal?: NodeJS.Signals;
  stopped?: boolean; // by the launcher, because another rank failed
}

/** Runs the ranks until all have ended; resolves to 0, or to the exit code of the rank that failed. */
export async function launch(args: TrainArguments): Promise<number> {
  // Reports an unreadable recipe here once, instead of on every rank.
  recipeFor(args);

  const before = memoryKills();
  const token = randomBytes(32).toString("hex");
  await using server = await serveRendezvous({
    size: args.nprocPerNode,
    host: "127.0.0.1",
    port: args.masterPort,
    token,
    deadlineSeconds: args.deadline,
  });
  const ranks = Array.from({ length: args.nprocPerNode }, (_, rank) => start(rank, args, server, token));
  const stopForwarding = forwardSignals(ranks);
  try {
    return await ended(ranks, before);
  } finally {
    stopForwarding();
  }
}

function start(rank: number, args: TrainArguments, server: RendezvousServer, token: string): Rank {
  const threads = Math.max(1, Math.floor(availableParallelism() / args.nprocPerNode));
  const child = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(new URL("./main.ts", import.meta.url)), ...process.argv.slice(2)],
    {
      env: {
        OMP_NUM_THREADS: String(threads),
        ...process.env,
        RANK: String(rank),
        WORLD_SIZE: String(args.nprocPerNode),
        LOCAL_RANK: String(rank),
        LOCAL_WORLD_SIZE: String(args.nprocPerNode),
        MASTER_ADDR: server.host,
        MASTER_PORT: String(server.port),
        // A single rank needs no rendezvous.
        ...(args.nprocPerNode > 1 && { TERSE_RENDEZVOUS: `${server.host}:${server.port}` }),
        TERSE_TOKEN: token,
      },
      // Rank 0 writes to the terminal itself; the lines of the others get a prefix. A closed IPC channel ends a rank without launcher.
      stdio: ["ignore", rank === 0 ? "inherit" : "pipe", "pipe", "ipc"],
    },
  );
  const state: Rank = { rank, child, lastLines: [] };
  if (child.stdout) prefixed(child.stdout, process.stdout, state);
  if (child.stderr) prefixed(child.stderr, process.stderr, state);
  child.on("message", (message: { failed?: Rank["failed"]; resume?: string }) => {
    if (message.failed) state.failed = message.failed;
    if (message.resume !== undefined) offerResume(message.resume);
  });
  return state;
}

function prefixed(from: NodeJS.ReadableStream, to: NodeJS.WriteStream, state: Rank): void {
  createInterface({ input: from }).on("line", (line) => {
    state.lastLines = [...state.lastLines.slice(-9), line];
    to.write(`[rank ${state.rank}] ${line}\n`);
  });
}

/** Waits for all ranks; after the first failure the others have time to report their errors before they are killed. */
async function ended(ranks: readonly Rank[], before: MemoryKills): Promise<number> {
  const failures: Rank[] = [];
  const timers: NodeJS.Timeout[] = [];
  const endOthers = () => {
    const signal = (name: NodeJS.Signals) => () => {
      for (const rank of ranks) {
        if (rank.child.exitCode !== null || rank.child.signalCode !== null) continue;
        rank.stopped = true;
        rank.child.kill(name);
      }
    };
    timers.push(setTimeout(signal("SIGTERM"), grace.afterFailure));
    timers.push(setTimeout(signal("SIGKILL"), grace.afterFailure + grace.afterSignal));
  };

  await Promise.all(
    ranks.map(
      (rank) =>
        new Promise<void>((resolve) => {
          rank.child.once("error", (error) => {
            rank.failed ??= { name: "Error", message: `rank ${rank.rank} could not be started: ${error.message}` };
            rank.code = 1;
            failures.push(rank);
            if (failures.length === 1) endOthers();
            resolve();
          });
          rank.child.once("close", (code, signal) => {
            if (code !== null) rank.code = code;
            if (signal !== null) rank.signal = signal;
            if (code !== 0) {
              failures.push(rank);
              if (failures.length === 1) endOthers();
            }
            resolve();
          });
        }),
    ),
  );
  for (const timer of timers) clearTimeout(timer);
  if (failures.length === 0) return 0;
  const cause = rootCause(failures);
  if (isInterruption(cause.code)) return cause.code; // it has been saved
  process.stderr.write(`error: ${explain(cause, before)}\n`);
  return cause.code ?? 128 + signalNumber(cause.signal);
}

/** Names of the errors of a rank that failed because another one did. */
const consequences = ["RankLostError", "CollectiveError"];

/** The rank that failed first: one that a signal killed, else one that failed by itself, else the first in the list. */
function rootCause(failures: readonly Rank[]): Rank {
  return (
    failures.find(({ signal, stopped }) => signal !== undefined && !stopped) ??
    failures.find(({ failed }) => failed && !consequences.includes(failed.name)) ??
    failures[0]!
  );
}

function explain({ rank, failed, signal, code, lastLines }: Rank, before: MemoryKills): string {
  if (failed) return failed.message;
  const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
  const why = signal === "SIGKILL" ? killedForMemory(before, memoryKills()) : undefined;
  const output = lastLines.length > 0 ? ` Its last output: ${lastLines.slice(-3).join(" | ")}` : "";
  return `rank ${rank} ${how} and all others were stopped${why === undefined ? "" : `: ${why}`}.${output}`;
}

function signalNumber(signal: NodeJS.Signals | undefined): number {
  return signal === undefined ? 1 : constants.signals[signal];
}

/** Forwards signals to the ranks; a second signal kills them. */
function forwardSignals(ranks: readonly Rank[]): () => void {
  let forwarded = false;
  const forward = (signal: NodeJS.Signals) => {
    for (const rank of ranks) {
      if (forwarded)
        rank.failed ??= { name: "Error", message: `ended by a second ${signal}, before the run was saved` };
      rank.child.kill(forwarded ? "SIGKILL" : signal);
    }
    forwarded = true;
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, forward);
  return () => {
    for (const name of names) process.off(name, forward);
  };
}
