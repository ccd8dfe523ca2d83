import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { RendezvousError } from "./errors.ts";

/**
 * The numeric address that this rank tells the others. `wanted` is an address, a host name, or the name of an interface;
 * without it, the address by which this machine reached the rendezvous. Never the host's own name: on many machines that
 * resolves to 127.0.1.1.
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
 * The address that other machines see this one by: its only one, or the one from which its routes lead to other networks. Undefined where
 * it has none. Two processes of a machine get the same answer.
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
    `${hostname()} has several addresses (${known}), and no route to elsewhere that would tell by which one the other machines see it; name one, or its interface, with TERSE_ADDRESS or the option address`,
  );
}

/** The source that the kernel would take towards other networks; nothing is sent. Undefined where no route leads there. */
async function routedAddress(family: number): Promise<string | undefined> {
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  try {
    const elsewhere = family === 6 ? "2001:db8::1" : "192.0.2.1"; // for documentation: nobody's (RFC 3849, RFC 5737)
    await new Promise<void>((done, failed) => socket.once("error", failed).connect(9, elsewhere, done));
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
