/**
 * Starts N Node processes that run one file as the ranks of a world, and kills those that still run at the end of a
 * test.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { type RendezvousServer, serveRendezvous } from "@terse/collectives";
import { nodeFlags } from "../../tools/programs.ts";

/**
 * Ranks end well before this, also on a busy machine, when every rank notices a fault. Where one does not, its
 * operations wait for 1800 s.
 */
const hangGuardSeconds = 300;

export interface StartOptions {
  /** File below programs/. */
  program: string;
  /** Ranks to start. */
  size: number;
  /** WORLD_SIZE by rank, where it differs from `size`. */
  worldSize?: (rank: number) => number;
  args?: readonly string[];
  env?: (rank: number) => NodeJS.ProcessEnv;
  /** This process runs the rendezvous server (default), or rank 0 does, at this port (0: a free one). */
  rendezvous?: "here" | { masterPort: number };
  deadlineSeconds?: number;
  outageSeconds?: number;
  /** These are not started. */
  absent?: readonly number[];
  /** A command that runs this rank's command, for example in another network namespace. */
  within?: (rank: number) => readonly string[];
}

/** How a rank ended. */
export interface Outcome {
  readonly rank: number;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The JSON values that it wrote to its standard output, one per line. */
  readonly reports: readonly Record<string, unknown>[];
  readonly stderr: string;
}

export interface RankProcess {
  readonly rank: number;
  readonly process: ChildProcess;
  readonly ended: Promise<Outcome>;
  /** Resolves with the first report that has this key. Rejects when the rank ends without one. */
  reported(key: string): Promise<Record<string, unknown>>;
}

export interface Ranks extends AsyncDisposable {
  readonly ranks: readonly RankProcess[];
  readonly server: RendezvousServer | undefined;
  /** Waits for all ranks. Throws, with their output, when one hangs. */
  end(): Promise<Outcome[]>;
}

export async function startRanks(options: StartOptions): Promise<Ranks> {
  const { program, size, rendezvous = "here", args = [], absent = [] } = options;
  const token = randomBytes(16).toString("hex");
  const server =
    rendezvous === "here"
      ? await serveRendezvous({
          size,
          token,
          deadlineSeconds: options.deadlineSeconds ?? hangGuardSeconds,
          ...(options.outageSeconds ? { outageSeconds: options.outageSeconds } : {}),
        })
      : undefined;
  const masterPort = rendezvous === "here" ? 0 : rendezvous.masterPort || (await freePort());
  const place = server
    ? { TERSE_RENDEZVOUS: `${server.host}:${server.port}` }
    : { MASTER_ADDR: "127.0.0.1", MASTER_PORT: `${masterPort}` };
  const file = fileURLToPath(new URL(`programs/${program}`, import.meta.url));

  const ranks = Array.from({ length: size }, (_, rank) => rank)
    .filter((rank) => !absent.includes(rank))
    .map((rank) => {
      const env = {
        ...process.env,
        ...place,
        RANK: `${rank}`,
        WORLD_SIZE: `${options.worldSize?.(rank) ?? size}`,
        LOCAL_RANK: `${rank}`,
        TERSE_TOKEN: token,
        ...options.env?.(rank),
      };
      const within = options.within?.(rank) ?? [];
      const [command, ...rest] = [...within, process.execPath, ...nodeFlags, file, ...args];
      return follow(rank, spawn(command!, rest, { env, stdio: ["ignore", "pipe", "pipe"] }));
    });

  const stop = async () => {
    for (const rank of ranks) rank.process.kill("SIGKILL");
    await Promise.all(ranks.map((rank) => rank.ended));
    await server?.close();
  };
  return {
    ranks,
    server,
    async end() {
      const late = Symbol("late");
      let timer: NodeJS.Timeout | undefined;
      const deadline = new Promise<typeof late>((resolve) => {
        timer = setTimeout(() => resolve(late), hangGuardSeconds * 1000);
      });
      const all = Promise.all(ranks.map((rank) => rank.ended));
      const outcomes = await Promise.race([all, deadline]);
      clearTimeout(timer);
      if (outcomes !== late) return outcomes;
      const running = ranks.filter(({ process: child }) => child.exitCode === null && child.signalCode === null);
      await stop();
      const output = (await all)
        .map((each) => `rank ${each.rank}: ${JSON.stringify(each.reports)}\n${each.stderr}`)
        .join("\n");
      throw new Error(
        `after ${hangGuardSeconds} s still running: rank ${running.map(({ rank }) => rank).join(", ")}\n${output}`,
      );
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** The error that a rank reported, if it had one. */
export function errorOf(
  outcome: Outcome,
): { name: string; message: string; rank?: number; missing?: number[]; reason?: string } | undefined {
  return outcome.reports.find((line) => "error" in line)?.["error"] as never;
}

function follow(rank: number, child: ChildProcess): RankProcess {
  const reports: Record<string, unknown>[] = [];
  const waiting: { key: string; resolve(line: Record<string, unknown>): void; reject(error: Error): void }[] = [];
  let rest = "";
  let stderr = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const value = JSON.parse(line) as Record<string, unknown>;
      reports.push(value);
      for (const wait of waiting) if (wait.key in value) wait.resolve(value);
    }
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Outcome>((resolve) => {
    child.on("close", (code, signal) => {
      for (const wait of waiting)
        wait.reject(new Error(`rank ${rank} ended without a report of ${wait.key}\n${stderr}`));
      resolve({ rank, code, signal, reports, stderr });
    });
  });
  return {
    rank,
    process: child,
    ended,
    reported: (key) =>
      new Promise((resolve, reject) => {
        const already = reports.find((line) => key in line);
        if (already) resolve(already);
        else waiting.push({ key, resolve, reject });
      }),
  };
}

/** A port that was free a moment ago. It is below the ephemeral ports, so that no connection takes it meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(20_000 * Math.random());
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
