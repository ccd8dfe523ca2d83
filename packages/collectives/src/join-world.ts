import { createHash } from "node:crypto";
import { collectives, type MpiPlace } from "@terse/native-collectives";
import { chooseAddress } from "./address.ts";
import { loopback } from "./engines/loopback.ts";
import { MpiWorld } from "./engines/mpi.ts";
import { type NcclOptions, NcclWorld } from "./engines/nccl.ts";
import type { RendezvousWorld, WorldMeeting } from "./engines/rendezvous-world.ts";
import { SocketWorld } from "./engines/sockets.ts";
import { RankLostError, RendezvousError } from "./errors.ts";
import type { Group } from "./group.ts";
import { type Link, linkOf } from "./link.ts";
import { findMeetingPlace, meetByMpi } from "./meeting-place.ts";
import { checkSeconds } from "./milliseconds.ts";
import { NativeGroup } from "./native-group.ts";
import { RendezvousClient } from "./rendezvous/client.ts";
import { protocolVersion } from "./rendezvous/protocol.ts";
import { readWorldEnvironment } from "./world-environment.ts";

export interface JoinOptions {
  /** tcp and gloo move memory of the CPU over TCP, mpi by MPI's messages, nccl that of GPUs. Default: TERSE_ENGINE, else tcp. */
  engine?: "tcp" | "gloo" | "mpi" | "nccl" | undefined;
  /** For the engine nccl. */
  nccl?: NcclOptions;
  env?: NodeJS.ProcessEnv;
  /** All ranks must be there after so long. Default 60. */
  deadlineSeconds?: number;
  /** An operation whose other ranks do not come for so long fails. Default 1800. */
  timeoutSeconds?: number;
  /** Address, host name or interface of this machine that the other ranks reach. Default: the one that reaches the rendezvous. */
  address?: string;
  /** Slows this rank's connections down to such a link, `100mbit,1ms`. Default: TERSE_EMULATE_LINK. */
  emulateLink?: Link | string | undefined;
  /** Anything that must be the same on all ranks, for example the run's recipe; a rank that differs is refused. */
  config?: string;
}

/**
 * Joins the world that the environment describes: RANK, WORLD_SIZE and TERSE_RENDEZVOUS (host:port of the launcher's server), or
 * MASTER_ADDR and MASTER_PORT, where rank 0 then holds the rendezvous itself; or what torchrun, srun or mpirun leave
 * (docs/several-machines.md). TERSE_TOKEN is the secret that all ranks share.
 * Without any of these it is a world of one. Throws RendezvousError when the ranks do not come together.
 */
export async function joinWorld(options: JoinOptions = {}): Promise<Group> {
  const environment = readWorldEnvironment(options.env);
  const { rendezvous, epoch } = environment;
  const { deadlineSeconds = 60, timeoutSeconds = 1800, config = "" } = options;
  checkSeconds({ deadlineSeconds, timeoutSeconds });
  const engine = options.engine ?? environment.engine ?? "tcp";
  const emulateLink = options.emulateLink === undefined ? environment.emulateLink : linkOf(options.emulateLink);
  if (engine !== "tcp" && engine !== "gloo" && engine !== "mpi" && engine !== "nccl")
    throw new TypeError(`there is no engine ${engine}; there are tcp, gloo, mpi and nccl`);
  const { localRank } = environment;
  const ncclOptions = { ...options.nccl, localRank, timeoutSeconds, deadlineSeconds };
  if (engine === "nccl" && emulateLink)
    throw new TypeError("a link can be emulated for the engines tcp, gloo and mpi; NCCL sends its bytes itself");
  const isAlone = environment.launcher !== undefined && environment.size === 1 && !rendezvous;
  const mpi = engine === "mpi" && !isAlone ? await startMpi(deadlineSeconds) : undefined;
  // An MPI job may have been started by something that leaves no names: MPI knows.
  const { rank, size } = mpi && !environment.launcher ? mpi : environment;
  if (size === 1 && !rendezvous && engine === "nccl") {
    const world = new NcclWorld(alone, ncclOptions, async () => {});
    return new NativeGroup(await world.open("world", [0]), world, "world", [0]);
  }
  if (size === 1 && !rendezvous) return loopback(1, { timeoutSeconds })[0]!;
  if (engine === "gloo" && !collectives().hasGloo)
    throw new RendezvousError("this build has no Gloo: `./terse setup` brings it, and the engine tcp needs none");

  const wantedAddress = options.address ?? environment.address;
  const {
    host,
    port,
    token,
    leave: leavePlace,
  } = mpi?.size === size && !rendezvous
    ? await meetByMpi({ ...environment, rank, size }, mpi, wantedAddress, deadlineSeconds)
    : await findMeetingPlace(environment, wantedAddress, deadlineSeconds);
  let world: RendezvousWorld | undefined;
  let stopBeat = () => {};
  let client: RendezvousClient | undefined;
  const leave = async () => {
    if (group) forget(group);
    stopBeat();
    await client?.close();
    await leavePlace();
  };
  let group: NativeGroup | undefined;
  try {
    const all = createHash("sha256")
      .update(JSON.stringify([protocolVersion, engine, config]))
      .digest("hex");
    client = await RendezvousClient.connect(
      { host, port, token, rank, size, epoch, deadlineSeconds, config: all },
      (verdict) => world?.judge(verdict),
    );
    const beat = client.beat;
    const silent = () => client?.silent();
    stopBeat = collectives().beat(beat.host, beat.port, beat.hello, beat.intervalMs, beat.silenceMs, silent);
    if (engine === "nccl") {
      world = new NcclWorld(client, ncclOptions, leave);
    } else if (engine === "mpi") {
      world = new MpiWorld(client, { timeoutSeconds, emulateLink }, leave);
    } else {
      const address = await chooseAddress(wantedAddress, client.localAddress);
      world = new SocketWorld(client, { engine, address, timeoutSeconds, deadlineSeconds, emulateLink }, leave);
    }
    const members = Array.from({ length: size }, (_, each) => each);
    group = new NativeGroup(await world.open("world", members), world, "world", members);
    remember(group);
    return group;
  } catch (error) {
    // The others must not wait for a rank that will not come.
    client?.abort("world", "aborted", `rank ${rank} could not join: ${(error as Error).message}`);
    await leave();
    if (error instanceof RendezvousError || error instanceof RankLostError) throw error;
    throw new RendezvousError((error as Error).message, [], { cause: error });
  }
}

/** The meeting of a world of one. */
const alone: WorldMeeting = {
  silenceSeconds: 10,
  rank: 0,
  gather: async (_key, _members, value) => [value],
  trade: async (_key, _members, values) => [...values],
  leave: async () => {},
  onLeave: () => {},
  abort: () => {},
  beating: async () => {},
};

// Worlds that are not closed yet. One listener for all of them: Node warns of a leak from the eleventh on.
const unclosed = new Set<Group>();

/** When nothing is left to do in this process, the others hear a goodbye. */
function closeAll(): void {
  for (const group of unclosed) void group.close();
}

function remember(group: Group): void {
  if (unclosed.size === 0) process.on("beforeExit", closeAll);
  unclosed.add(group);
}

function forget(group: Group): void {
  if (unclosed.delete(group) && unclosed.size === 0) process.removeListener("beforeExit", closeAll);
}

async function startMpi(deadlineSeconds: number): Promise<MpiPlace> {
  if (!collectives().hasMpi)
    throw new RendezvousError(
      "this build has no MPI: put its compiler wrapper (mpicc) on the PATH, or name its prefix in TERSE_MPI, and build again with `./terse setup`",
    );
  try {
    return await collectives().startMpi(deadlineSeconds);
  } catch (error) {
    throw new RendezvousError((error as Error).message, [], { cause: error });
  }
}
