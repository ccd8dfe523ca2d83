import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connects, within 5 s and before a deadline of `performance.now()`. */
export async function reach(host: string, port: number, deadline: number): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  const limit = AbortSignal.timeout(Math.ceil(Math.max(Math.min(deadline - performance.now(), 5000), 1)));
  try {
    await once(socket, "connect", { signal: limit });
    return socket;
  } catch (error) {
    socket.destroy();
    throw limit.aborted ? new Error("the connection was not answered") : error;
  }
}
