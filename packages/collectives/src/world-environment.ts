/** Which rank this process is and where the ranks meet, from what the launcher left in the environment. */
import { RendezvousError } from "./errors.ts";
import { type Link, parseLink } from "./link.ts";

export interface WorldEnvironment {
  /** Who started the ranks; undefined for a world of one. */
  readonly launcher: string | undefined;
  readonly rank: number;
  readonly size: number;
  readonly localRank: number;
  readonly localSize: number;
  readonly token: string;
  readonly epoch: string;
  /** The server that the launcher holds. */
  readonly rendezvous: { host: string; port: number } | undefined;
  /** Where rank 0 holds it otherwise. */
  readonly master: { host: string; port: number } | undefined;
  /** Torchrun's agent holds a store at `master`; rank 0 listens elsewhere and says where under this name. */
  readonly storeKey: string | undefined;
  readonly engine: string | undefined;
  readonly address: string | undefined;
  readonly emulateLink: Link | undefined;
}

interface Launcher {
  readonly name: string;
  readonly rank: string;
  readonly sizes: readonly string[]; // the first that is set counts
  readonly localRank: string;
  readonly localSize: string;
  /** It leaves its names in other processes too: this tells that it started this one. */
  readonly only?: string;
}

// The innermost first, so that what runs inside another launcher's job is asked before it: torchrun is started by srun, once per
// node, and mpirun in a job of Slurm's. Names as in the launchers' manuals: torchrun, "Environment Variables"; Open MPI 5,
// "Environment variables set for MPI applications"; MPICH's Hydra (and Intel MPI, MVAPICH, `srun --mpi=pmi2`); srun(1), "OUTPUT
// ENVIRONMENT VARIABLES". sbatch and salloc set SLURM_PROCID and SLURM_NTASKS as well, in a script that is no rank: only a step has a
// SLURM_STEP_ID. `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE beside its own, which say more; its PMI_JOBID is the step's name.
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
    only: "SLURM_STEP_ID",
  },
  // Of a PMIx runtime that is none of these, and that gives no size.
  {
    name: "PMIx",
    rank: "PMIX_RANK",
    sizes: ["WORLD_SIZE"],
    localRank: "PMIX_LOCAL_RANK",
    localSize: "PMIX_LOCAL_SIZE",
  },
];

/** Throws RendezvousError when a variable is not a number that makes sense. Nothing set at all is a world of one rank. */
export function readWorldEnvironment(env: NodeJS.ProcessEnv = process.env): WorldEnvironment {
  const isSet = (name: string) => env[name] !== undefined && env[name] !== "";
  const number = (name: string | undefined): number | undefined => {
    if (name === undefined || !isSet(name)) return undefined;
    if (!/^\d{1,9}$/.test(env[name]!))
      throw new RendezvousError(`${name} must be a number from 0 on, and is "${env[name]}"`);
    return Number(env[name]);
  };
  const sizeOf = ({ sizes }: Launcher) => sizes.find(isSet);
  const ofSlurm = isSet("SLURM_STEP_ID") && env["PMI_JOBID"] === slurmStep(env);
  const speaks = launchers.filter(({ name, only }) => (name === "PMI" ? !ofSlurm : only === undefined || isSet(only)));
  const whole = speaks.find((each) => isSet(each.rank) && sizeOf(each) !== undefined);
  const launcher = speaks.find((each) => isSet(each.rank) || sizeOf(each) !== undefined);
  const rank = number(launcher?.rank);
  const size = number(launcher && sizeOf(launcher));
  if (launcher && launcher !== whole) {
    // RANK=0 or WORLD_SIZE=1 alone says nothing wrong of a world of one.
    const [have, lack] = rank === undefined ? [sizeOf(launcher)!, launcher.rank] : [launcher.rank, launcher.sizes[0]!];
    const others = whole && ` (${whole.name} has set ${whole.rank} and ${sizeOf(whole)}: unset ${have} to go by those)`;
    if (whole || (rank ?? 0) > 0 || (size ?? 1) > 1)
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
  const masterHost = env["MASTER_ADDR"];
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
    master: given ?? (launcher && meetingPlace(launcher, here, env, masterHost, masterPort)),
    storeKey:
      given && env["TORCHELASTIC_USE_AGENT_STORE"] === "True"
        ? `terse/${env["TORCHELASTIC_RUN_ID"] ?? ""}/attempt ${epoch}`
        : undefined,
    address: env["TERSE_ADDRESS"] || undefined,
    engine: env["TERSE_ENGINE"] || undefined,
    emulateLink: env["TERSE_EMULATE_LINK"] ? emulatedLink(env["TERSE_EMULATE_LINK"]) : undefined,
  };
}

/**
 * Where ranks meet that were told no MASTER_ADDR or no MASTER_PORT: on this machine when all are here, else on the first node of the
 * Slurm step, where rank 0 is; at a port that the job's own name gives, below those that systems hand out.
 */
function meetingPlace(
  { name }: Launcher,
  { size, localSize }: { size: number; localSize: number },
  env: NodeJS.ProcessEnv,
  host: string | undefined,
  port: number | undefined,
): { host: string; port: number } | undefined {
  const nodes = env["SLURM_STEP_NODELIST"] || env["SLURM_JOB_NODELIST"] || env["SLURM_NODELIST"];
  const job = name === "Slurm" ? slurmStep(env) : name === "Open MPI" ? env["PMIX_NAMESPACE"] : undefined;
  const place = host || (localSize === size ? "127.0.0.1" : name === "Slurm" && nodes ? firstNode(nodes) : undefined);
  const gate = port ?? (job ? portOf(job) : undefined);
  return place !== undefined && gate !== undefined ? { host: place, port: gate } : undefined;
}

/** Job and step, as Slurm itself writes them: 4711.0 */
function slurmStep(env: NodeJS.ProcessEnv): string {
  return `${env["SLURM_JOB_ID"] || env["SLURM_JOBID"]}.${env["SLURM_STEP_ID"]}`;
}

/** Tasks on one of a step's nodes. Slurm writes 4(x2),3 for 4, 4 and 3; other launchers give one number. */
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

/** The first name of a list as Slurm writes it: `node[003-007,12],gpu1` → node003, `rack[1-2]node[3-5]` → rack1node3. */
function firstNode(list: string): string {
  const [first] = /^(?:[^,[]|\[[^\]]*\])*/.exec(list)!;
  return first.replace(/\[([^\],-]*)[^\]]*\]/g, "$1");
}

/** 10000 to 29999, by FNV-1a of the name: two jobs on one machine rarely meet at the same. */
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

function hostAndPort(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  if (!match || Number(match[3]) > 65535)
    throw new RendezvousError(`TERSE_RENDEZVOUS must be host:port or [IPv6 address]:port, and is "${text}"`);
  return { host: match[1] ?? match[2]!, port: Number(match[3]) };
}
