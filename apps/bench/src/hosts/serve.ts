/** The program of a host: it answers the requests of `Hosts`, one after the other, until the connection closes. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";

type Handlers = Record<string, (request: never) => unknown>;

/** A request is `{ do: name, … }`; its handler's result is the answer. */
export async function serve(handlers: Handlers): Promise<void> {
  const socket = connect(process.env["TERSE_BENCH_CONTROL"]!);
  await new Promise((done, failed) => socket.once("connect", done).once("error", failed));
  socket.write(process.env["RANK"]!);
  let busy = false;
  socket.once("end", () => {
    if (busy) process.exit(1); // the process that sent the request has ended
  });
  for await (const line of createInterface({ input: socket })) {
    const request = JSON.parse(line) as { do: string };
    busy = true;
    try {
      const answer = await handlers[request.do]!(request as never);
      socket.write(`${JSON.stringify({ answer: answer ?? null })}\n`);
    } catch (error) {
      socket.write(`${JSON.stringify({ error: (error as Error).message })}\n`);
    }
    busy = false;
  }
  socket.end();
}

/**
 * Bytes that this host has sent over its link, as the kernel counts them; undefined where it has no link of its own.
 */
export function bytesOnLink(): number | undefined {
  try {
    return Number(readFileSync("/sys/class/net/eth0/statistics/tx_bytes", "utf8"));
  } catch {
    return undefined;
  }
}
