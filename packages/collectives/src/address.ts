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

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
