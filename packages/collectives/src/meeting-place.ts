/** Where the ranks meet: the rendezvous that the launcher holds, or the one that rank 0 opens and the others find. */
import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { collectives, kinds, type MpiPlace, reductions } from "@terse/native-collectives";
import { chooseAddress, isLoopbackAddress, outwardAddress } from "./address.ts";
import { RendezvousError } from "./errors.ts";
import { type RendezvousServer, serveRendezvous } from "./rendezvous/server.ts";
import { TorchStore } from "./rendezvous/torch-store.ts";
import type { WorldEnvironment } from "./world-environment.ts";

export interface MeetingPlace {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Ends what this rank holds of it, once all others have said goodbye. */
  leave(): Promise<void>;
}

// Of launchers that name no place: how they hand variables on.
const hints: Record<string, string> = {
  "Open MPI": "; mpirun hands them on with -x MASTER_ADDR -x MASTER_PORT, and the engine mpi needs neither",
  PMI: "; mpirun hands them on with -genvlist MASTER_ADDR,MASTER_PORT, and the engine mpi needs neither",
};

const stores = new Map<string, number>(); // how often this process has met by way of each name

/** Throws RendezvousError where the environment names no place, or rank 0 cannot listen there. */
export async function findMeetingPlace(
  environment: WorldEnvironment,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<MeetingPlace> {
  const { rank, size, rendezvous, master, storeKey, token, launcher } = environment;
  if (rendezvous) return { ...rendezvous, token, leave: async () => {} };
  if (!master)
    throw new RendezvousError(
      `a world of ${size} ranks needs a place to meet: set MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, or start it with the launcher${hints[launcher ?? ""] ?? ""}`,
    );
  if (storeKey !== undefined) return meetByStore(environment, storeKey, address, deadlineSeconds);
  const place = { host: await hostOf(master.host, address, rank === 0), port: master.port, token };
  if (rank !== 0) return { ...place, leave: async () => {} };
  const server = await hold(environment, place.host, place.port, deadlineSeconds);
  return { ...place, leave: () => endRendezvous(server) };
}

/** Torchrun's agent listens at MASTER_PORT, and keeps what rank 0 tells it: where the rendezvous is, or why there is none. */
async function meetByStore(
  environment: WorldEnvironment,
  name: string,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<MeetingPlace> {
  const { rank, token, master } = environment;
  const round = stores.get(name) ?? 0;
  stores.set(name, round + 1);
  const key = `${name}/rendezvous ${round}`;
  const open = () => TorchStore.connect(master!.host, master!.port, deadlineSeconds);
  await using store = await open();
  if (rank !== 0) {
    const { host, port, error } = JSON.parse(await store.get(key)) as { host: string; port: number; error?: string };
    if (error !== undefined) throw new RendezvousError(`rank 0 holds no rendezvous: ${error}`);
    return { host, port, token, leave: async () => {} };
  }
  try {
    const host = await chooseAddress(address, store.localAddress);
    const server = await hold(environment, host, 0, deadlineSeconds);
    store.set(key, JSON.stringify({ host, port: server.port }));
    const leave = async () => {
      await endRendezvous(server);
      // A later process of this attempt must not find it; the store may be gone, and then there is nothing to find.
      await using again = await open().catch(() => undefined);
      await again?.delete(key).catch(() => {});
    };
    return { host, port: server.port, token, leave };
  } catch (error) {
    store.set(key, JSON.stringify({ error: (error as Error).message }));
    throw error;
  }
}

let rounds = 0; // meetings of this process by MPI

/**
 * The processes of an MPI job need nothing but MPI to meet: its first process holds the rendezvous and tells the others, by a
 * broadcast, where, and the token: a random one where TERSE_TOKEN is not set.
 */
export async function meetByMpi(
  environment: WorldEnvironment,
  mpi: MpiPlace,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<MeetingPlace> {
  const meeting = collectives().mpiMeeting(rounds++, deadlineSeconds);
  let server: RendezvousServer | undefined;
  try {
    const note = new Uint8Array(4096);
    const token = environment.token || randomBytes(16).toString("hex");
    if (mpi.rank === 0) {
      let told: { host: string; port: number; token: string } | { error: string };
      try {
        const near = environment.localSize === environment.size;
        const host = await chooseAddress(address, (near ? undefined : await outwardAddress()) ?? "127.0.0.1");
        server = await hold({ ...environment, token }, host, 0, deadlineSeconds, environment.rank);
        told = { host, port: server.port, token };
      } catch (error) {
        told = { error: (error as Error).message };
      }
      new TextEncoder().encodeInto(JSON.stringify(told), note);
    }
    await meeting.operate(kinds.broadcast, reductions.sum, 0, [note], [], 0);
    const told = JSON.parse(new TextDecoder().decode(note).replaceAll("\0", ""));
    if (told.error !== undefined) throw new RendezvousError(`MPI's first process holds no rendezvous: ${told.error}`);
    const held = server;
    return { host: told.host, port: told.port, token: told.token, leave: async () => held && endRendezvous(held) };
  } catch (error) {
    await server?.close();
    if (error instanceof RendezvousError) throw error;
    throw new RendezvousError(`the processes of this MPI job did not meet: ${(error as Error).message}`, [], {
      cause: error,
    });
  } finally {
    await meeting.close();
  }
}

/** Rank 0 without a launcher: the rendezvous lives in this process, and others than it wait for it to appear. */
async function hold(
  { size, token, epoch }: WorldEnvironment,
  host: string,
  port: number,
  deadlineSeconds: number,
  holder = 0,
): Promise<RendezvousServer> {
  const answers = (intervalMs: number) => collectives().answers(intervalMs);
  const server = await serveRendezvous({ size, host, port, token, epoch, deadlineSeconds, holder, answers });
  server.unref();
  return server;
}

/**
 * What MASTER_ADDR names, as the address to listen at or as it is. On its own machine a host's name often resolves to 127.0.1.1, where no
 * other machine comes: there it is `address`, or the one by which others see this machine.
 */
async function hostOf(name: string, address: string | undefined, listens: boolean): Promise<string> {
  const { address: named } = await lookup(name).catch(() => ({ address: name }));
  const meantForHere = name === "localhost" || isLoopbackAddress(name);
  if (meantForHere || !isLoopbackAddress(named)) return listens ? named : name;
  return chooseAddress(address, (address ? undefined : await outwardAddress()) ?? named);
}

/** The server goes last: the others still say goodbye to it. */
async function endRendezvous(server: RendezvousServer): Promise<void> {
  server.ref();
  await Promise.race([server.finished, server.verdict]);
  await server.close();
}
