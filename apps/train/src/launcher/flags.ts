/**
 * The launcher's flags, which are torchrun's. As with torchrun, PET_NAME in the environment gives the ones that the
 * command line does not.
 */
import { readdirSync } from "node:fs";
import type { WorldEnvironment } from "@terse/collectives";
import { availableProcessors } from "@terse/native-loader";
import { type FlagReader, numberFrom, OptionsError, parseArguments, wholeNumberFrom } from "@terse/options";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export const launcherFlags = {
  nnodes: machines,
  nprocPerNode: processes, // ranks on this machine
  nodeRank: wholeNumberFrom({ least: 0, most: 1e5 }),
  rdzvEndpoint: endpoint, // where the rendezvous listens: on the machine of node rank 0
  standalone: "switch", // this machine alone, any free port
  maxRestarts: wholeNumberFrom({ least: 0, most: 1e6 }),
  logDir: String, // a file for each rank and attempt
  shutdownTimeout: numberFrom({ least: 0, most: 1e6 }), // seconds between a signal and SIGKILL
} as const;

type LauncherFlags = {
  readonly [Name in keyof typeof launcherFlags]?: (typeof launcherFlags)[Name] extends FlagReader<infer T> ? T : true;
};

/** Which ranks this launcher starts, where, and what it does about their failures. */
export interface Place {
  readonly nnodes: number;
  readonly nprocPerNode: number;
  readonly ranksAsked?: number; // the same, where the command line says it
  readonly nodeRank: number;
  readonly rdzvEndpoint?: Endpoint;
  readonly maxRestarts: number;
  readonly logDir?: string;
  readonly shutdownTimeout: number;
  /**
   * It starts the ranks of its machine, although the environment names a rank: with several machines a rank has a
   * LOCAL_RANK too.
   */
  readonly isLauncher: boolean;
}

/** PET_NNODES, PET_NPROC_PER_NODE and the others, which Kubeflow's operators set for torchrun. */
export function launcherFlagsIn(env: NodeJS.ProcessEnv): LauncherFlags {
  const named = Object.keys(launcherFlags).flatMap((name) => {
    const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    const value = env[variableOf(name)];
    if (value === undefined || value === "") return [];
    if (name === "standalone") return value === "0" ? [] : [flag];
    return [`${flag}=${value}`];
  });
  const { PET_MASTER_ADDR: host, PET_MASTER_PORT: port, PET_RDZV_ENDPOINT: found } = env;
  const isBare = host?.includes(":") && !host.startsWith("[");
  if (host && !found) named.push(`--rdzv-endpoint=${isBare ? `[${host}]` : host}:${port || defaultPort}`);
  try {
    return parseArguments(named, { command: "./terse train", flags: launcherFlags }).flags as LauncherFlags;
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new OptionsError(error.lines.map((line) => `in the environment, as PET_…: ${line}`));
  }
}

const variableOf = (name: string) => `PET_${name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/**
 * This launcher's place among those of the machines; `ranks` of a machine unless a flag says how many. Throws
 * `OptionsError` where the flags contradict each other.
 */
export function placeOf(flags: LauncherFlags, env: NodeJS.ProcessEnv, ranks = 2): Place {
  const { nnodes = 1, nodeRank = 0, standalone, rdzvEndpoint } = flags;
  const problem =
    standalone && (nnodes > 1 || nodeRank > 0)
      ? "--standalone: is for one machine; drop it, or --nnodes and --node-rank"
      : nnodes > 1 && rdzvEndpoint === undefined
        ? `--nnodes=${nnodes}: all machines need the same --rdzv-endpoint HOST:PORT, an address of the machine with --node-rank=0`
        : nodeRank >= nnodes
          ? `--node-rank=${nodeRank}: must be 0 to ${nnodes - 1}, for ${nnodes === 1 ? "one machine; add --nnodes" : `${nnodes} machines`}`
          : undefined;
  if (problem !== undefined) throw new OptionsError([problem]);
  return {
    nnodes,
    nodeRank,
    nprocPerNode: flags.nprocPerNode ?? ranks,
    ...(flags.nprocPerNode !== undefined && !env[variableOf("nprocPerNode")] && { ranksAsked: flags.nprocPerNode }),
    ...(rdzvEndpoint && !standalone && { rdzvEndpoint }),
    maxRestarts: flags.maxRestarts ?? 0,
    ...(flags.logDir !== undefined && { logDir: flags.logDir }),
    shutdownTimeout: flags.shutdownTimeout ?? 120,
    isLauncher: flags.nnodes !== undefined && !env["LOCAL_RANK"],
  };
}

/** What the user should know of --nproc-per-node where another launcher has made this process a rank. */
export function remarkOnRanks(
  { ranksAsked }: Pick<Place, "ranksAsked">,
  { launcher, rank, size, localSize }: Pick<WorldEnvironment, "launcher" | "rank" | "size" | "localSize">,
): string | undefined {
  if (ranksAsked === undefined || ranksAsked === localSize || rank > 0) return undefined;
  return `--nproc-per-node=${ranksAsked} does not count: the environment has the variables of ${launcher}'s ranks, which make this process rank ${rank} of ${size}; to start ranks here, unset them`;
}

function machines(text: string): number {
  if (/^\d+:\d+$/.test(text))
    throw new RangeError(
      `expected a number of machines, got "${text}"; a range is for torchrun, which starts ./terse train --resume auto`,
    );
  return wholeNumberFrom({ least: 1, most: 1e5 })(text);
}

/** torchrun's words: gpu, cpu, or auto for a rank on each GPU, else on each core. */
function processes(text: string): number {
  if (!["auto", "cpu", "gpu"].includes(text)) return wholeNumberFrom({ least: 1, most: 1024 })(text);
  const gpus = text === "cpu" ? 0 : readdirSync("/dev").filter((name) => /^nvidia\d+$/.test(name)).length;
  if (text === "gpu" && gpus === 0) throw new RangeError("this machine has no GPU; give a number, or cpu");
  return gpus || availableProcessors();
}

const defaultPort = 29400; // torchrun's

function endpoint(text: string): Endpoint {
  const [, v6, name, port = defaultPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = v6 ?? name;
  if (host === undefined || Number(port) > 65535) throw new RangeError(`expected HOST:PORT, got "${text}"`);
  return { host, port: Number(port) };
}
