import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { RendezvousError } from "./errors.ts";

/**
 * The numeric address that this rank announces to the others. `wanted` is an address, a host name, or the name of an
 * interface. Without it, the result is the address by which this machine reached the rendezvous. The host's own name is
 * never used, because on many machines it resolves to 127.0.1.1.
 */
export async function chooseAddress(wanted: string | undefined, towardsRendezvous: string): Promise<string> {
  if (wanted === undefined || wanted === "") return towardsRendezvous;
  if (isIP(wanted)) return wanted;
  const addresses = networkInterfaces()[wanted];
  if (addresses) {
    const family = isIP(towardsRendezvous) === 6 ? "IPv6" : "IPv4";
    return (addresses.find((each) => each.family === family) ?? addresses[0]!).address;
  }
  try {
    return (await lookup(wanted, { family: isIP(towardsRendezvous) })).address;
  } catch (cause) {
    const known = Object.keys(networkInterfaces()).join(", ");
    throw new RendezvousError(
      `the address ${wanted} (option address, or TERSE_ADDRESS) is no IP address, no interface of ${hostname()} (${known}), and no host name that resolves; give one of these`,
      [],
      { cause },
    );
  }
}

/**
 * The address by which other machines reach this one: its only address, or the source address of its route to other
 * networks. undefined where it has none. All processes of a machine get the same result.
 */
export async function outwardAddress(
  interfaces = networkInterfaces(),
  routed = routedAddress,
): Promise<string | undefined> {
  const all = Object.entries(interfaces).flatMap(([name, each]) => (each ?? []).map((at) => ({ ...at, name })));
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const ipv4 = outside.filter(({ family }) => family === "IPv4");
  const candidates = ipv4.length > 0 ? ipv4 : outside;
  if (candidates.length <= 1) return candidates[0]?.address;
  const address = await routed(isIP(candidates[0]!.address));
  if (candidates.some((each) => each.address === address)) return address;
  const known = candidates.map((each) => `${each.address} of ${each.name}`).join(", ");
  throw new RendezvousError(
    `${hostname()} has several addresses (${known}), and no route to other networks that would select one; name one, or its interface, with TERSE_ADDRESS or the option address`,
  );
}

/** The source address that the kernel would use towards other networks; undefined without a route. Sends nothing. */
async function routedAddress(family: number): Promise<string | undefined> {
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  try {
    const remote = family === 6 ? "2001:db8::1" : "192.0.2.1"; // reserved for documentation (RFC 3849, RFC 5737)
    await new Promise<void>((done, failed) => socket.once("error", failed).connect(9, remote, done));
    return socket.address().address;
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}

/** Whether a host, by its name or address, is this machine and nobody else can reach it. */
export const isLoopbackHost = (host: string): boolean => host === "localhost" || isLoopbackAddress(host);

/** A socket's address: an IPv4 address as such, even on a socket of IPv6. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:/, "");
