/** This process's TCP sockets, as the kernel lists them. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Connection {
  readonly fd: number;
  /** address:port */
  readonly local: string;
  readonly remote: string;
  readonly listens: boolean;
  /** The kernel asks the other side for a sign of life when nothing is under way. */
  readonly keepAlive: boolean;
}

/** IPv4 only. */
export function connections(): Connection[] {
  const fds = new Map<string, number>();
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      fds.set(readlinkSync(`/proc/self/fd/${fd}`), Number(fd));
    } catch {
      // Closed since it was listed.
    }
  }
  const found: Connection[] = [];
  for (const line of readFileSync("/proc/self/net/tcp", "utf8").trim().split("\n").slice(1)) {
    const [, local, remote, state, , timer, , , , inode] = line.trim().split(/\s+/);
    const fd = fds.get(`socket:[${inode}]`);
    if (fd === undefined) continue;
    found.push({
      fd,
      local: readable(local!),
      remote: readable(remote!),
      listens: state === "0A",
      keepAlive: timer!.startsWith("02:"),
    });
  }
  return found;
}

/** `0100007F:1F90` is 127.0.0.1:8080 on a little-endian machine. */
function readable(text: string): string {
  const [address, port] = text.split(":") as [string, string];
  return `${Buffer.from(address, "hex").reverse().join(".")}:${Number.parseInt(port, 16)}`;
}
