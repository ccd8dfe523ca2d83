/**
 * Starts the ranks of this machine, again from the last save when one fails, and ends them all together. Ranks get
 * torchrun's environment variables. The launchers of several machines agree on each attempt (nodes.ts).
 */

import { randomBytes } from "node:crypto";
import {
  answerHeartbeats,
  hostOf,
  type RendezvousServer,
  readWorldEnvironment,
  serveRendezvous,
} from "@terse/collectives";
import { print, printText } from "@terse/options";
import { newToken, tokenVariable } from "@terse/page/access";
import type { TrainArguments } from "../arguments.ts";
import { exitCodeOf, isInterruption } from "../interruption.ts";
import { isSavedHere, recipeFor } from "../recipe-for.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { offerResume, startAmong } from "../saves/resume-command.ts";
import type { ToLauncher } from "../to-launcher.ts";
import { endWithStdin } from "./end-with-stdin.ts";
import { describeFailure, exitCodeOfFailure, firstFailure, isOfAllRanks } from "./first-failure.ts";
import type { Place } from "./flags.ts";
import { ForwardedSignals } from "./forward-signals.ts";
import { firstAttempt } from "./log-files.ts";
import { joinNodes, type Nodes } from "./nodes.ts";
import { type Failure, RankProcess } from "./rank-process.ts";

/** Milliseconds that ranks have to end by themselves after one has failed, and after SIGTERM. */
const grace = { afterFailure: 10_000, afterSignal: 5_000 };

/** What the ranks have told the launcher of their run. */
interface RunSoFar {
  readonly folder?: string;
  readonly goesOn?: boolean; // there is a save
  readonly isSaved?: boolean; // by a rank of this launch
}

/** Ranks by node: how many, and where their rendezvous is, which runs in the launcher of node 0. */
interface Attempt {
  readonly number: number; // counted by --log-dir from its first attempt on
  readonly first: number; // rank on this machine
  readonly size: number; // of the world
  readonly rendezvous: { readonly host: string; readonly port: number };
  readonly token: string;
}

/** What a launcher reads of its command line. The ranks read all of it. */
export type LaunchArguments = Place & Pick<TrainArguments, "deadline" | "outage" | "resume" | "dashboard">;

/** Reports an unreadable recipe once, instead of on every rank. The ranks read a run that is saved elsewhere. */
export async function launchTraining(args: TrainArguments): Promise<number> {
  if (args.nnodes === 1 || args.resume === undefined) await checkRecipe(args);
  return launch(args);
}

/** Runs the ranks until all have ended; resolves to 0, or to the exit code of the rank that failed first. */
export async function launch(args: LaunchArguments): Promise<number> {
  await using nodes = await joinNodes(args);
  using signals = new ForwardedSignals(args.shutdownTimeout);
  endWithStdin();
  const loggedBefore = args.logDir === undefined ? 0 : firstAttempt(args.logDir);
  const numbers = await nodes.tell({ loggedBefore, maxRestarts: args.maxRestarts });
  const number = Math.max(...numbers.map((each) => each.loggedBefore));
  const maxRestarts = Math.min(...numbers.map((each) => each.maxRestarts));
  if (args.dashboard) process.env[tokenVariable] ||= newToken(); // the same for rank 0 in every attempt
  let run: RunSoFar = {};
  for (let restarts = 0; ; restarts++) {
    const ended = await oneAttempt(args, { number: number + restarts, run, nodes, signals });
    run = ended.run;
    const first = firstFailure(ended.failures);
    if (first === undefined) return ended.interrupted ?? 0;
    const code = exitCodeOfFailure(first);
    if (isInterruption(first.code)) return code; // it has been saved
    if (first.signal !== undefined && code === ended.interrupted) {
      print(`${first.signal}: the ranks were about to begin or to end, and were ended at once`, process.stderr);
      return code;
    }
    printText(`error: ${describeFailure(first, ended.failures, ended.size)}`, process.stderr);
    const isFinal = ended.interrupted !== undefined || isOfAllRanks(first, ended.failures, ended.size);
    if (isFinal || restarts === maxRestarts) return code;
    const from = run.folder === undefined ? "" : `, ${run.goesOn ? "from the last save" : "anew"} in ${run.folder}`;
    print(`restart ${restarts + 1} of ${maxRestarts}${from}`, process.stderr);
  }
}

/** The initial weights may be on node 0 alone. A run that `--resume auto` goes on with has its own recipe. */
async function checkRecipe(args: TrainArguments): Promise<void> {
  const { initFrom, nodeRank, base } = args;
  if (isSavedHere(args)) return;
  if (initFrom === undefined) recipeFor(args);
  else if (nodeRank === 0) recipeFor(args, await readInitialWeights(initFrom, base));
}

interface AttemptOutcome {
  readonly failures: readonly Failure[];
  readonly run: RunSoFar;
  readonly size: number; // of the world
  readonly interrupted: number | undefined; // the exit code, where a launcher got a signal
}

/** All ranks of all machines, from their start to the end of the last one. */
async function oneAttempt(
  args: LaunchArguments,
  { number, run, nodes, signals }: { number: number; run: RunSoFar; nodes: Nodes; signals: ForwardedSignals },
): Promise<AttemptOutcome> {
  const before = await nodes.tell({ size: args.nprocPerNode, signal: signals.first ?? null });
  const sizes = before.map((each) => each.size);
  const size = sizes.reduce((sum, each) => sum + each, 0);
  const first = sizes.slice(0, args.nodeRank).reduce((sum, each) => sum + each, 0);
  const token = args.nnodes === 1 ? randomBytes(32).toString("hex") : (process.env["TERSE_TOKEN"] ?? "");
  await using server = args.nodeRank === 0 ? await serve(args, size, number, token) : undefined;
  const [place] = (await nodes.tell(server ? { host: server.host, port: server.port } : null)) as [
    Attempt["rendezvous"],
  ];
  const attempt = { number, first, size, rendezvous: place, token };

  let seen = run;
  const heard = ({ run: folder, saved, resume, page }: ToLauncher) => {
    if (page !== undefined) print(`page ${page}`);
    if (folder !== undefined) seen = { ...seen, folder };
    if (saved) seen = { ...seen, isSaved: true };
    if (resume === undefined) return;
    seen = { ...seen, goesOn: true };
    offerResume(args.nnodes > 1 ? { ...resume, start: startAmong(args) } : resume);
  };
  const argv = argumentsAfter(run, args);
  const logs = args.logDir === undefined ? undefined : { folder: args.logDir, attempt: number };
  const ranks = Array.from({ length: before.some(({ signal }) => signal) ? 0 : args.nprocPerNode }, (_, local) => {
    const env = environmentOf(local, attempt, args);
    return new RankProcess({ rank: first + local, argv, env, logs, heard });
  });
  signals.ranks = ranks;
  const mine = await allEnded(ranks);
  signals.ranks = [];
  const all = await nodes.tell({ failures: mine, run: seen, signal: signals.first ?? null });
  const signal = all.find((each) => each.signal)?.signal;
  return {
    failures: all.flatMap(({ failures }) => failures),
    run: all[0]!.run,
    size,
    interrupted: signal ? exitCodeOf(signal) : undefined,
  };
}

/**
 * The ranks' rendezvous: at `--rdzv-endpoint` on one machine, else at a free port, because the launchers use that one.
 */
async function serve(
  { nnodes, rdzvEndpoint, deadline, outage }: LaunchArguments,
  size: number,
  attempt: number,
  token: string,
): Promise<RendezvousServer> {
  const { host, port } = rdzvEndpoint ?? { host: "127.0.0.1", port: 0 };
  const outageSeconds = outage ?? readWorldEnvironment({ TERSE_OUTAGE: process.env["TERSE_OUTAGE"] }).outageSeconds;
  return serveRendezvous({
    size,
    host: await hostOf(host, process.env["TERSE_ADDRESS"] || undefined, true, deadline),
    port: nnodes === 1 ? port : 0,
    token,
    epoch: `${attempt}`,
    deadlineSeconds: deadline,
    ...(outageSeconds !== undefined && { outageSeconds }),
    ...(nnodes > 1 && { answers: answerHeartbeats }), // ranks of other machines notice when the launcher's is gone
  });
}

function environmentOf(
  local: number,
  { number, first, size, rendezvous: { host, port }, token }: Attempt,
  { nprocPerNode }: LaunchArguments,
): NodeJS.ProcessEnv {
  const address = host.includes(":") ? `[${host}]` : host;
  return {
    ...process.env,
    RANK: `${first + local}`,
    WORLD_SIZE: `${size}`,
    LOCAL_RANK: `${local}`,
    LOCAL_WORLD_SIZE: `${nprocPerNode}`,
    MASTER_ADDR: host,
    MASTER_PORT: `${port}`,
    // A single rank needs no rendezvous.
    ...(size > 1 && { TERSE_RENDEZVOUS: `${address}:${port}` }),
    TERSE_TOKEN: token,
    TERSE_EPOCH: `${number}`,
  };
}

/**
 * The command line of the ranks: the launcher's own; after a failure, that which resumes the run that they had begun.
 */
function argumentsAfter({ folder, isSaved }: RunSoFar, { resume }: LaunchArguments): string[] {
  const own = process.argv.slice(2);
  // Until the next save, a restart resumes from the named one.
  const isNamed = resume !== undefined && resume !== "auto";
  if (folder === undefined || (isNamed && !isSaved)) return own;
  return [...own, "--resume=auto", `--out=${folder}`];
}

/**
 * Resolves when all ranks have ended. After the first failure the others have time to report their errors before they
 * are killed.
 */
async function allEnded(ranks: readonly RankProcess[]): Promise<Failure[]> {
  const failures: Failure[] = [];
  const timers: NodeJS.Timeout[] = [];
  const stopAll = (signal: NodeJS.Signals) => () => {
    for (const rank of ranks) rank.stop(signal);
  };
  await Promise.all(
    ranks.map(async ({ ended }) => {
      const failure = await ended;
      if (failure === undefined) return;
      if (failures.push(failure) > 1) return;
      timers.push(setTimeout(stopAll("SIGTERM"), grace.afterFailure));
      timers.push(setTimeout(stopAll("SIGKILL"), grace.afterFailure + grace.afterSignal));
    }),
  );
  for (const timer of timers) clearTimeout(timer);
  return failures;
}
