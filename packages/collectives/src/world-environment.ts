/** Which rank this process is, from what the launcher left in the environment. */
import { RendezvousError } from "./errors.ts";
import { type Link, parseLink } from "./link.ts";

export interface WorldEnvironment {
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
  readonly address: string | undefined;
  readonly emulateLink: Link | undefined;
}

// torchrun's names first; then Open MPI's, those of PMI (MPICH, Intel), and Slurm's.
const rankNames = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
const sizeNames = ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
const localRankNames = ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];
const localSizeNames = ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/** Throws RendezvousError when a variable is not a number that makes sense. Nothing set at all is a world of one rank. */
export function readWorldEnvironment(env: NodeJS.ProcessEnv = process.env): WorldEnvironment {
  const number = (names: readonly string[]): { name: string; value: number } | undefined => {
    const name = names.find((each) => env[each] !== undefined && env[each] !== "");
    if (name === undefined) return undefined;
    if (!/^\d{1,9}$/.test(env[name]!))
      throw new RendezvousError(`${name} must be a number from 0 on, and is "${env[name]}"`);
    return { name, value: Number(env[name]) };
  };
  const rank = number(rankNames);
  const size = number(sizeNames);
  if (rank && !size && rank.value > 0)
    throw new RendezvousError(`${rank.name} is ${rank.value}, and WORLD_SIZE is not set`);
  if (size && size.value < 1) throw new RendezvousError(`${size.name} must be 1 or more, and is ${size.value}`);
  if (size && !rank && size.value > 1) throw new RendezvousError(`${size.name} is ${size.value}, and RANK is not set`);
  if (rank && size && rank.value >= size.value)
    throw new RendezvousError(
      `${rank.name} is ${rank.value} in a world of ${size.value}; it must be 0 to ${size.value - 1}`,
    );

  const masterPort = number(["MASTER_PORT"]);
  const masterHost = env["MASTER_ADDR"];
  return {
    rank: rank?.value ?? 0,
    size: size?.value ?? 1,
    localRank: number(localRankNames)?.value ?? 0,
    localSize: number(localSizeNames)?.value ?? 1,
    token: env["TERSE_TOKEN"] ?? "",
    epoch: env["TERSE_EPOCH"] ?? env["TORCHELASTIC_RESTART_COUNT"] ?? "0",
    rendezvous: env["TERSE_RENDEZVOUS"] ? hostAndPort(env["TERSE_RENDEZVOUS"]) : undefined,
    master: masterHost && masterPort ? { host: masterHost, port: masterPort.value } : undefined,
    address: env["TERSE_ADDRESS"] || undefined,
    emulateLink: env["TERSE_EMULATE_LINK"] ? emulatedLink(env["TERSE_EMULATE_LINK"]) : undefined,
  };
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
