import { createHash } from "node:crypto";
import { checkOptions, collectives } from "@terse/native-collectives";
import { chooseAddress } from "./address.ts";
import { checkEmulatesLinks, checkEngine, defaultEngine, type EngineName, engines } from "./engines/engines.ts";
import { loopback } from "./engines/loopback.ts";
import type { NcclOptions } from "./engines/nccl-options.ts";
import type { RendezvousWorld } from "./engines/rendezvous-world.ts";
import { RankLostError, RendezvousError } from "./errors.ts";
import type { Group } from "./group.ts";
import { type Link, linkOf } from "./link.ts";
import { checkSeconds } from "./milliseconds.ts";
import { NativeGroup } from "./native-group.ts";
import { RendezvousClient } from "./rendezvous/client.ts";
import { findByMpi, findRendezvous } from "./rendezvous/find-rendezvous.ts";
import { checkOutage } from "./rendezvous/outage.ts";
import { protocolVersion } from "./rendezvous/protocol.ts";
import { rendezvousOfOne } from "./rendezvous/rendezvous.ts";
import { readWorldEnvironment } from "./world-environment.ts";

/** Options of `joinWorld`. Each has a default. */
export interface JoinOptions {
  /** The engine (engines/engines.ts has them all). Default: TERSE_ENGINE, else tcp. */
  engine?: EngineName | undefined;
  /** For the engine nccl. */
  nccl?: NcclOptions;
  env?: NodeJS.ProcessEnv;
  /** All ranks must join within so long. Default 60. */
  deadlineSeconds?: number;
  /** An operation fails where another rank has not called it after so long. Default 1800. */
  timeoutSeconds?: number;
  /**
   * A link may be down for so long, 0.1 to 3600, and it costs time alone. That of the process which runs the rendezvous
   * counts. Default: TERSE_OUTAGE, else 8.
   */
  outageSeconds?: number | undefined;
  /**
   * Address, host name or interface of this machine that the other ranks can reach. Default: the one that reaches the
   * rendezvous.
   */
  address?: string;
  /** Slows this rank's connections down to such a link, `100mbit,1ms`. Default: TERSE_EMULATE_LINK. */
  emulateLink?: Link | string | undefined;
  /** Must be the same text on all ranks, for example the run's recipe; a rank with another one is refused. */
  config?: string;
}

const optionNames = [
  "engine",
  "nccl",
  "env",
  "deadlineSeconds",
  "timeoutSeconds",
  "outageSeconds",
  "address",
  "emulateLink",
  "config",
] as const satisfies (keyof JoinOptions)[];

/**
 * Joins the world that the environment describes: RANK, WORLD_SIZE and TERSE_RENDEZVOUS (host:port of the launcher's
 * server), or MASTER_ADDR and MASTER_PORT, where rank 0 then runs the rendezvous server; or the variables of torchrun,
 * srun or mpirun (docs/several-machines.md). TERSE_TOKEN is the secret that all ranks share. Without any of these it is
 * a world of one rank. Throws RendezvousError when the ranks cannot join.
 */
export async function joinWorld(options: JoinOptions = {}): Promise<Group> {
  checkOptions("joinWorld", options, optionNames);
  const found = readWorldEnvironment(options.env);
  const environment = { ...found, outageSeconds: options.outageSeconds ?? found.outageSeconds };
  if (environment.outageSeconds !== undefined) checkOutage(environment.outageSeconds);
  const { rendezvous, epoch, localRank } = environment;
  const { deadlineSeconds = 60, timeoutSeconds = 1800, config = "", nccl } = options;
  checkSeconds({ deadlineSeconds, timeoutSeconds });
  const name = checkEngine(options.engine ?? environment.engine ?? defaultEngine);
  const engine = engines[name];
  const emulateLink = options.emulateLink === undefined ? environment.emulateLink : linkOf(options.emulateLink);
  if (emulateLink) checkEmulatesLinks(name);

  const isAlone = environment.launcher !== undefined && environment.size === 1 && !rendezvous;
  const requireEngine = () => {
    const missing = engine.missing();
    if (missing !== undefined) throw new RendezvousError(missing);
  };
  if (engine.startJob && !isAlone) requireEngine();
  const job = isAlone ? undefined : await engine.startJob?.(deadlineSeconds);
  // An MPI job may come from a launcher that sets no variables: MPI itself knows rank and size.
  const { rank, size } = job && !environment.launcher ? job : environment;
  const limits = { localRank, timeoutSeconds, deadlineSeconds, emulateLink, nccl };
  const members = Array.from({ length: size }, (_, each) => each);
  if (size === 1 && !rendezvous) {
    if (!engine.opensAlone) return loopback(1, { timeoutSeconds })[0]!;
    const address = async () => "127.0.0.1";
    const world = await engine.world({ ...limits, rendezvous: rendezvousOfOne, leave: async () => {}, address });
    return new NativeGroup(await world.open("world", members), world, "world", members);
  }
  requireEngine();

  const wantedAddress = options.address ?? environment.address;
  const server =
    job?.size === size && !rendezvous
      ? await findByMpi({ ...environment, rank, size }, job, wantedAddress, deadlineSeconds)
      : await findRendezvous(environment, wantedAddress, deadlineSeconds);
  let world: RendezvousWorld | undefined;
  let stopHeartbeat = () => {};
  let client: RendezvousClient | undefined;
  let group: NativeGroup | undefined;
  const leave = async () => {
    if (group) forget(group);
    stopHeartbeat();
    await client?.close();
    await server.leave();
  };
  try {
    const all = createHash("sha256")
      .update(JSON.stringify([protocolVersion, name, config]))
      .digest("hex");
    const { host, port, token } = server;
    const joined = await RendezvousClient.connect(
      { host, port, token, rank, size, epoch, deadlineSeconds, config: all },
      (failure) => world?.fail(failure),
    );
    client = joined;
    const beat = joined.heartbeat;
    const silent = () => joined.serverIsSilent();
    stopHeartbeat = collectives().heartbeat(beat.host, beat.port, beat.hello, beat.intervalMs, beat.silenceMs, silent);
    const address = () => chooseAddress(wantedAddress, joined.localAddress);
    world = await engine.world({ ...limits, rendezvous: joined, leave, address });
    group = new NativeGroup(await world.open("world", members), world, "world", members);
    remember(group);
    return group;
  } catch (error) {
    // The other ranks must not wait for this one.
    client?.abort("world", "aborted", `rank ${rank} could not join: ${(error as Error).message}`);
    await leave();
    if (error instanceof RendezvousError || error instanceof RankLostError) throw error;
    throw new RendezvousError((error as Error).message, [], { cause: error });
  }
}

// Worlds that are not closed yet. They share one listener, because Node warns of a leak from the eleventh on.
const unclosed = new Set<Group>();

/**
 * When nothing is left to do in this process, it closes its groups, so that the other ranks do not take it for lost.
 */
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
