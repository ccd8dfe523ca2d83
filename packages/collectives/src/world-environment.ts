/** Reads this process's rank, and the address of the rendezvous, from the launcher's environment variables. */
import { RendezvousError } from "./errors.ts";
import { type Link, parseLink } from "./link.ts";
import { checkOutage, leastOutageSeconds, mostOutageSeconds, outageVariable } from "./rendezvous/outage.ts";

/** What the launcher's environment variables say of this process and its world. */
export interface WorldEnvironment {
  /** The launcher that started the ranks; undefined for a world of one rank. */
  readonly launcher: string | undefined;
  readonly rank: number;
  readonly size: number;
  readonly localRank: number;
  readonly localSize: number;
  readonly token: string;
  readonly epoch: string;
  /** The launcher's own rendezvous server. */
  readonly rendezvous: { host: string; port: number } | undefined;
  /** Where rank 0 runs the server, if the launcher runs none. */
  readonly master: { host: string; port: number } | undefined;
  /**
   * Set where torchrun's agent has a store at `master`. Rank 0 then listens elsewhere, and stores its address under
   * this key.
   */
  readonly storeKey: string | undefined;
  readonly engine: string | undefined;
  readonly address: string | undefined;
  readonly emulateLink: Link | undefined;
  /** A link may be down for so long; of the process that runs the rendezvous. */
  readonly outageSeconds: number | undefined;
}

interface Launcher {
  readonly name: string;
  readonly rank: string;
  readonly sizes: readonly string[]; // the first one that is set is used
  readonly localRank: string;
  readonly localSize: string;
  /** A variable that is set only in its ranks, where the others are set in other processes too. */
  readonly marker?: string;
}

// The innermost launcher first: srun may start torchrun, once per node, and mpirun may run in a Slurm job. The names
// are from the launchers' manuals: torchrun, "Environment Variables"; Open MPI 5, "Environment variables set for MPI
// applications"; MPICH's Hydra (and Intel MPI, MVAPICH, `srun --mpi=pmi2`); srun(1), "OUTPUT ENVIRONMENT VARIABLES".
// sbatch and salloc also set SLURM_PROCID and SLURM_NTASKS, in a script that is no rank; only a step has a
// SLURM_STEP_ID. `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE beside its own variables, which contain more; its
// PMI_JOBID is the step's name.
const launchers: readonly Launcher[] = [
  {
    name: "torchrun",
    rank: "RANK",
    sizes: ["WORLD_SIZE"],
    localRank: "LOCAL_RANK",
    localSize: "LOCAL_WORLD_SIZE",
  },
  {
    name: "Open MPI",
    rank: "OMPI_COMM_WORLD_RANK",
    sizes: ["OMPI_COMM_WORLD_SIZE"],
    localRank: "OMPI_COMM_WORLD_LOCAL_RANK",
    localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
  },
  {
    name: "PMI",
    rank: "PMI_RANK",
    sizes: ["PMI_SIZE"],
    localRank: "MPI_LOCALRANKID",
    localSize: "MPI_LOCALNRANKS",
  },
  {
    name: "Slurm",
    rank: "SLURM_PROCID",
    sizes: ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    localRank: "SLURM_LOCALID",
    localSize: "SLURM_STEP_TASKS_PER_NODE",
    marker: "SLURM_STEP_ID",
  },
  // Any other PMIx runtime, which sets no size.
  {
    name: "PMIx",
    rank: "PMIX_RANK",
    sizes: ["WORLD_SIZE"],
    localRank: "PMIX_LOCAL_RANK",
    localSize: "PMIX_LOCAL_SIZE",
  },
];

/**
 * Reads the variables of `./terse train`, torchrun, srun or mpirun. Without any of them it is a world of one rank.
 * Throws RendezvousError where a variable has an impossible value.
 */
export function readWorldEnvironment(env: NodeJS.ProcessEnv = process.env): WorldEnvironment {
  const isSet = (name: string) => env[name] !== undefined && env[name] !== "";
  const number = (name: string | undefined): number | undefined => {
    if (name === undefined || !isSet(name)) return undefined;
    if (!/^\d{1,9}$/.test(env[name]!))
      throw new RendezvousError(`${name} must be a number from 0 on, and is "${env[name]}"`);
    return Number(env[name]);
  };
  const sizeOf = ({ sizes }: Launcher) => sizes.find(isSet);
  const pmiOfSlurm = isSet("SLURM_STEP_ID") && env["PMI_JOBID"] === slurmStep(env);
  const present = launchers.filter(({ name, marker }) =>
    name === "PMI" ? !pmiOfSlurm : marker === undefined || isSet(marker),
  );
  const complete = present.find((each) => isSet(each.rank) && sizeOf(each) !== undefined);
  const launcher = present.find((each) => isSet(each.rank) || sizeOf(each) !== undefined);
  const rank = number(launcher?.rank);
  const size = number(launcher && sizeOf(launcher));
  if (launcher && launcher !== complete) {
    // RANK=0 or WORLD_SIZE=1 alone is right for a world of one rank.
    const [have, lack] = rank === undefined ? [sizeOf(launcher)!, launcher.rank] : [launcher.rank, launcher.sizes[0]!];
    const others =
      complete && ` (${complete.name} has set ${complete.rank} and ${sizeOf(complete)}: unset ${have} to use those)`;
    if (complete || (rank ?? 0) > 0 || (size ?? 1) > 1)
      throw new RendezvousError(`${have} is ${env[have]}, and ${lack} is not set${others ?? ""}`);
  }
  if (size !== undefined && size < 1)
    throw new RendezvousError(`${sizeOf(launcher!)} must be 1 or more, and is ${size}`);
  if (rank !== undefined && size !== undefined && rank >= size)
    throw new RendezvousError(`${launcher!.rank} is ${rank} in a world of ${size}; it must be 0 to ${size - 1}`);

  const epoch = env["TERSE_EPOCH"] ?? env["TORCHELASTIC_RESTART_COUNT"] ?? "0";
  const masterPort = number("MASTER_PORT");
  if (masterPort === 0 || (masterPort ?? 1) > 65535)
    throw new RendezvousError(`MASTER_PORT must be 1 to 65535, and is ${masterPort}`);
  const masterHost = withoutBrackets(env["MASTER_ADDR"]);
  const perNode = (launcher && env[launcher.localSize]) || "1";
  const here = { size: size ?? 1, localSize: tasksOn(number("SLURM_NODEID") ?? 0, perNode) };
  const given = masterHost && masterPort !== undefined ? { host: masterHost, port: masterPort } : undefined;
  return {
    launcher: launcher?.name,
    rank: rank ?? 0,
    localRank: number(launcher?.localRank) ?? 0,
    ...here,
    token: env["TERSE_TOKEN"] ?? "",
    epoch,
    rendezvous: env["TERSE_RENDEZVOUS"] ? hostAndPort(env["TERSE_RENDEZVOUS"]) : undefined,
    master: given ?? (launcher && defaultMaster(launcher, here, env, masterHost, masterPort)),
    storeKey:
      given && env["TORCHELASTIC_USE_AGENT_STORE"] === "True"
        ? `terse/${env["TORCHELASTIC_RUN_ID"] ?? ""}/attempt ${epoch}`
        : undefined,
    address: env["TERSE_ADDRESS"] || undefined,
    engine: env["TERSE_ENGINE"] || undefined,
    emulateLink: env["TERSE_EMULATE_LINK"] ? emulatedLink(env["TERSE_EMULATE_LINK"]) : undefined,
    outageSeconds: env[outageVariable] ? outageIn(env[outageVariable]) : undefined,
  };
}

/** An IPv6 address may stand in brackets, as before a port. */
const withoutBrackets = (host: string | undefined): string | undefined => host?.replace(/^\[(.*)\]$/, "$1");

/**
 * The host and port of rank 0 where MASTER_ADDR or MASTER_PORT is not set. The host is this machine when all ranks are
 * on it, else the first node of the Slurm step. The port follows from the job's name, and is below the ephemeral ports.
 */
function defaultMaster(
  { name }: Launcher,
  { size, localSize }: { size: number; localSize: number },
  env: NodeJS.ProcessEnv,
  host: string | undefined,
  port: number | undefined,
): { host: string; port: number } | undefined {
  const nodes = env["SLURM_STEP_NODELIST"] || env["SLURM_JOB_NODELIST"] || env["SLURM_NODELIST"];
  const job = name === "Slurm" ? slurmStep(env) : name === "Open MPI" ? env["PMIX_NAMESPACE"] : undefined;
  const address = host || (localSize === size ? "127.0.0.1" : name === "Slurm" && nodes ? firstNode(nodes) : undefined);
  const number = port ?? (job ? portOf(job) : undefined);
  return address !== undefined && number !== undefined ? { host: address, port: number } : undefined;
}

/** Job and step in Slurm's own notation: 4711.0 */
function slurmStep(env: NodeJS.ProcessEnv): string {
  return `${env["SLURM_JOB_ID"] || env["SLURM_JOBID"]}.${env["SLURM_STEP_ID"]}`;
}

/** The number of tasks on one node of a step. Slurm writes 4(x2),3 for 4, 4 and 3; other launchers write one number. */
function tasksOn(node: number, perNode: string): number {
  const counts = perNode.split(",").map((each) => /^(\d{1,9})(?:\(x(\d{1,9})\))?$/.exec(each));
  let first = 0;
  for (const count of counts) {
    const nodes = Number(count?.[2] ?? 1);
    if (count && (counts.length === 1 || node < first + nodes)) return Number(count[1]);
    first += nodes;
  }
  return 1;
}

/** The first name in a node list of Slurm: `node[003-007,12],gpu1` → node003, `rack[1-2]node[3-5]` → rack1node3. */
function firstNode(list: string): string {
  const [first] = /^(?:[^,[]|\[[^\]]*\])*/.exec(list)!;
  return first.replace(/\[([^\],-]*)[^\]]*\]/g, "$1");
}

/** 10000 to 29999, by FNV-1a of the name, so that two jobs on one machine rarely get the same port. */
function portOf(job: string): number {
  let hash = 2166136261;
  for (const byte of Buffer.from(job)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return 10000 + (hash % 20000);
}

function emulatedLink(text: string): Link {
  try {
    return parseLink(text);
  } catch (error) {
    throw new RendezvousError(`TERSE_EMULATE_LINK: ${(error as Error).message}`);
  }
}

function outageIn(text: string): number {
  try {
    checkOutage(text.trim() === "" ? Number.NaN : Number(text));
    return Number(text);
  } catch {
    throw new RendezvousError(
      `${outageVariable} must be a number of seconds from ${leastOutageSeconds} to ${mostOutageSeconds}, and is "${text}"`,
    );
  }
}

function hostAndPort(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  if (!match || Number(match[3]) > 65535)
    throw new RendezvousError(`TERSE_RENDEZVOUS must be host:port or [IPv6 address]:port, and is "${text}"`);
  return { host: match[1] ?? match[2]!, port: Number(match[3]) };
}
