/** Finds the rendezvous server: the launcher runs it, or rank 0 starts it and the other ranks find it. */
import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { collectives, kinds, type MpiWorld, reductions } from "@terse/native-collectives";
import { chooseAddress, isLoopbackAddress, isLoopbackHost, outwardAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { textOfPeer } from "../text-of-peer.ts";
import type { WorldEnvironment } from "../world-environment.ts";
import { isCount, isText, misfit, optional } from "./check-value.ts";
import { serveRendezvous } from "./server.ts";
import type { HeartbeatReplies, RendezvousServer } from "./server-options.ts";
import { TorchStore } from "./torch-store.ts";

/** Address of the rendezvous server, and its token. */
export interface RendezvousAddress {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Where this rank runs the server: stops it when all other ranks have left. */
  leave(): Promise<void>;
}

// For launchers that give no address: how they pass variables on.
const hints: Record<string, string> = {
  "Open MPI": "; mpirun passes them on with -x MASTER_ADDR -x MASTER_PORT, and the engine mpi needs neither",
  PMI: "; mpirun passes them on with -genvlist MASTER_ADDR,MASTER_PORT, and the engine mpi needs neither",
};

const joins = new Map<string, number>(); // how many worlds this process has joined, by the store's key

/**
 * Finds the rendezvous server of this rank's world, and starts it where this rank must. Throws RendezvousError where
 * the environment names no address, or rank 0 cannot listen there.
 */
export async function findRendezvous(
  environment: WorldEnvironment,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<RendezvousAddress> {
  const { rank, size, rendezvous, master, storeKey, token, launcher } = environment;
  if (rendezvous) return { ...rendezvous, token, leave: async () => {} };
  if (!master)
    throw new RendezvousError(
      `a world of ${size} ranks needs a rendezvous: set MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, or start it with the launcher${hints[launcher ?? ""] ?? ""}`,
    );
  if (storeKey !== undefined) return findByTorchStore(environment, storeKey, address, deadlineSeconds);
  const place = { host: await hostOf(master.host, address, rank === 0, deadlineSeconds), port: master.port, token };
  if (rank !== 0) return { ...place, leave: async () => {} };
  const server = await startServer(environment, place.host, place.port, deadlineSeconds);
  return { ...place, leave: () => stopServer(server) };
}

/**
 * Torchrun's agent has a store at MASTER_PORT. Rank 0 writes there where its rendezvous server is, or why it has none.
 */
async function findByTorchStore(
  environment: WorldEnvironment,
  name: string,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<RendezvousAddress> {
  const { rank, token, master } = environment;
  const round = joins.get(name) ?? 0;
  joins.set(name, round + 1);
  const key = `${name}/rendezvous ${round}`;
  const open = () => TorchStore.connect(master!.host, master!.port, deadlineSeconds);
  await using store = await open();
  if (rank !== 0) {
    const { host, port } = announcedIn(await store.get(key), "rank 0");
    return { host, port, token, leave: async () => {} };
  }
  try {
    const host = await chooseAddress(address, store.localAddress);
    const server = await startServer(environment, host, 0, deadlineSeconds);
    store.set(key, JSON.stringify({ host, port: server.port }));
    const leave = async () => {
      await stopServer(server);
      // A later process of this attempt must not find this address. The store, and the address in it, may be gone
      // already.
      await using again = await open().catch(() => undefined);
      await again?.delete(key).catch(() => {});
    };
    return { host, port: server.port, token, leave };
  } catch (error) {
    store.set(key, JSON.stringify({ error: (error as Error).message }));
    throw error;
  }
}

let rounds = 0; // worlds that this process has joined by MPI

/**
 * The processes of an MPI job find each other by MPI alone: the first process starts the rendezvous server and
 * broadcasts its address and the token, which is random where TERSE_TOKEN is not set.
 */
export async function findByMpi(
  environment: WorldEnvironment,
  mpi: MpiWorld,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<RendezvousAddress> {
  const job = collectives().mpiBootstrap(rounds++, deadlineSeconds);
  let server: RendezvousServer | undefined;
  try {
    const message = new Uint8Array(4096);
    const token = environment.token || randomBytes(16).toString("hex");
    if (mpi.rank === 0) {
      let announced: { host: string; port: number; token: string } | { error: string };
      try {
        const near = environment.localSize === environment.size;
        const host = await chooseAddress(address, (near ? undefined : await outwardAddress()) ?? "127.0.0.1");
        server = await startServer({ ...environment, token }, host, 0, deadlineSeconds, environment.rank);
        announced = { host, port: server.port, token };
      } catch (error) {
        announced = { error: (error as Error).message };
      }
      new TextEncoder().encodeInto(JSON.stringify(announced), message);
    }
    await job.operate(kinds.broadcast, reductions.sum, 0, [message], [], 0);
    const text = new TextDecoder().decode(message).replaceAll("\0", "");
    const found = announcedIn(text, "the first process of this MPI job");
    const own = server;
    return {
      host: found.host,
      port: found.port,
      token: found.token ?? token,
      leave: async () => own && stopServer(own),
    };
  } catch (error) {
    await server?.close();
    if (error instanceof RendezvousError) throw error;
    const why = (error as Error).message;
    throw new RendezvousError(`the processes of this MPI job did not find each other: ${why}`, [], { cause: error });
  } finally {
    await job.close();
  }
}

/** Where the rendezvous is, as the process says that started it. Throws RendezvousError. */
function announcedIn(text: string, who: string): { host: string; port: number; token?: string } {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // the same as another value
  }
  const { error } = (found ?? {}) as { error?: unknown };
  if (typeof error === "string")
    throw new RendezvousError(`${who} could not start the rendezvous: ${textOfPeer(error)}`);
  const isPort = (value: unknown) => isCount(value) && value > 0 && value < 65536;
  const problem = misfit(found, { host: isText, port: isPort, token: optional(isText) });
  if (problem !== undefined) throw new RendezvousError(`${who} does not say where the rendezvous is: ${problem}`);
  return found as { host: string; port: number; token?: string };
}

/**
 * Writes a line to each connection of a rendezvous server every `intervalMs`, by which the ranks hear that it lives. A
 * native thread does it, also while JavaScript is busy.
 */
export const answerHeartbeats = (intervalMs: number): HeartbeatReplies => collectives().heartbeatReplies(intervalMs);

/** Starts the rendezvous server in this process. The other ranks retry until it listens. */
async function startServer(
  { size, token, epoch, outageSeconds }: WorldEnvironment,
  host: string,
  port: number,
  deadlineSeconds: number,
  holder = 0,
): Promise<RendezvousServer> {
  const limit = outageSeconds === undefined ? {} : { outageSeconds };
  const options = { size, host, port, token, epoch, deadlineSeconds, holder, ...limit };
  const server = await serveRendezvous({ ...options, answers: answerHeartbeats });
  server.unref();
  return server;
}

/**
 * The host that MASTER_ADDR names. Where this rank listens there itself, the result is a numeric address: on its own
 * machine a host's name often resolves to 127.0.1.1, which no other machine reaches. It is then `address`, or the
 * address by which other machines reach this one.
 */
export async function hostOf(
  name: string,
  address: string | undefined,
  listens: boolean,
  deadlineSeconds: number,
  resolve: Resolve = lookup,
): Promise<string> {
  // Ranks that connect resolve the name again whenever they try.
  const named = listens
    ? await firstAddress(name, deadlineSeconds, resolve)
    : await resolve(name).then(
        (found) => found.address,
        () => name,
      );
  if (isLoopbackHost(name) || !isLoopbackAddress(named)) return listens ? named : name;
  return chooseAddress(address, (address ? undefined : await outwardAddress()) ?? named);
}

type Resolve = (name: string) => Promise<{ address: string }>;

/** The name of a Kubernetes service may resolve only a moment after the pod has started: tries until the deadline. */
async function firstAddress(name: string, seconds: number, resolve: Resolve): Promise<string> {
  const deadline = performance.now() + 1000 * seconds;
  for (let pause = 50; ; pause = Math.min(2 * pause, 1000)) {
    try {
      return (await resolve(name)).address;
    } catch (error) {
      const left = deadline - performance.now();
      if (left <= 0)
        throw new RendezvousError(
          `the rendezvous cannot listen at ${name}, which did not resolve within ${seconds} s (${(error as Error).message}); MASTER_ADDR, or --rdzv-endpoint, must name the machine of rank 0`,
          [],
          { cause: error },
        );
      await sleep(Math.min(left, pause));
    }
  }
}

/** The server stops last, because the other ranks still report to it that they leave. */
async function stopServer(server: RendezvousServer): Promise<void> {
  server.ref();
  await Promise.race([server.finished, server.failure]);
  await server.close();
}
