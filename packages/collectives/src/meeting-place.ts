/** Where the ranks meet: the rendezvous that the launcher holds, or the one that rank 0 opens and the others find. */
import { lookup } from "node:dns/promises";
import { chooseAddress, isLoopbackAddress } from "./address.ts";
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

const stores = new Map<string, number>(); // how often this process has met by way of each name

/** Throws RendezvousError where the environment names no place, or rank 0 cannot listen there. */
export async function findMeetingPlace(
  environment: WorldEnvironment,
  address: string | undefined,
  deadlineSeconds: number,
): Promise<MeetingPlace> {
  const { rank, size, rendezvous, master, storeKey, token } = environment;
  if (rendezvous) return { ...rendezvous, token, leave: async () => {} };
  if (!master)
    throw new RendezvousError(
      `a world of ${size} ranks needs a place to meet: set MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, or start it with the launcher`,
    );
  if (storeKey !== undefined) return meetByStore(environment, storeKey, address, deadlineSeconds);
  if (rank !== 0) return { ...master, token, leave: async () => {} };
  const server = await hold(environment, await listenAddress(master.host), master.port, deadlineSeconds);
  return { ...master, token, leave: () => endRendezvous(server) };
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

/** Rank 0 without a launcher: the rendezvous lives in this process, and others than it wait for it to appear. */
async function hold(
  { size, token, epoch }: WorldEnvironment,
  host: string,
  port: number,
  deadlineSeconds: number,
): Promise<RendezvousServer> {
  const server = await serveRendezvous({ size, host, port, token, epoch, deadlineSeconds, holder: 0 });
  server.unref();
  return server;
}

/** A host's own name often resolves to 127.0.1.1, where no other machine comes; then the rendezvous listens everywhere. */
async function listenAddress(host: string): Promise<string> {
  const { address } = await lookup(host).catch(() => ({ address: host }));
  const meantForHere = host === "localhost" || isLoopbackAddress(host);
  return isLoopbackAddress(address) && !meantForHere ? "::" : address;
}

/** The server goes last: the others still say goodbye to it. */
async function endRendezvous(server: RendezvousServer): Promise<void> {
  server.ref();
  await Promise.race([server.finished, server.verdict]);
  await server.close();
}
