import { createServer, isIP } from "node:net";
import { checkOptions } from "@terse/native-collectives";
import { show } from "@terse/options";
import { isLoopbackHost } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { checkSeconds } from "../milliseconds.ts";
import { checkOutage } from "./outage.ts";
import { ServedWorld } from "./served-world.ts";
import type { RendezvousOptions, RendezvousServer } from "./server-options.ts";

const optionNames = [
  "size",
  "host",
  "port",
  "token",
  "deadlineSeconds",
  "outageSeconds",
  "epoch",
  "holder",
  "answers",
] as const satisfies (keyof RendezvousOptions)[];

/**
 * Starts the rendezvous server: a key-value store that watches the ranks' heartbeats and tells all ranks when one is
 * lost.
 */
export async function serveRendezvous(options: RendezvousOptions): Promise<RendezvousServer> {
  checkOptions("serveRendezvous", options, optionNames);
  const { size, host = "127.0.0.1", port = 0, token, deadlineSeconds = 60 } = options ?? {};
  checkSeconds({ deadlineSeconds });
  if (!Number.isInteger(size) || size < 1)
    throw new RangeError(`rendezvous: the size must be 1 or more, and is ${show(size)}`);
  if (typeof token !== "string")
    throw new TypeError(
      'serveRendezvous: token must be a string, the secret of the ranks; "" on a loopback address alone',
    );
  if (options.outageSeconds !== undefined) checkOutage(options.outageSeconds);
  if (token === "" && !isLoopbackHost(host))
    throw new RendezvousError(
      `the rendezvous would listen on ${host} without a token; set TERSE_TOKEN to the same secret for all ranks`,
    );
  const world = new ServedWorld(options);
  const server = createServer({ noDelay: true }, (socket) => world.connections.accept(socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  server.on("error", () => {}); // no file descriptor was left for a connection; its rank retries
  try {
    return world.run(server);
  } catch (error) {
    server.close();
    throw error;
  }
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const remedy =
    error.code === "EADDRINUSE" && port === 0
      ? "no port is free; see net.ipv4.ip_local_port_range"
      : error.code === "EADDRINUSE"
        ? "it is in use; choose another port (MASTER_PORT, or --rdzv-endpoint), or end the run that holds it"
        : error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND"
          ? "this is not an address of this machine; MASTER_ADDR must name the machine of rank 0"
          : error.code === "EACCES"
            ? "ports below 1024 need privileges; choose another one (MASTER_PORT)"
            : error.message;
  return new RendezvousError(`the rendezvous cannot listen on ${where}: ${remedy}`, [], { cause: error });
}
