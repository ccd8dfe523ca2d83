import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { collectives } from "./index.ts";

async function listening(each: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    each(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: (server.address() as AddressInfo).port, server, [Symbol.asyncDispose]: stop };
}
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const fdOf = (socket: Socket) => (socket as unknown as { _handle: { fd: number } })._handle.fd;

describe("a heartbeat", () => {
  it("sends hello and then lines while JavaScript is blocked", async () => {
    let heard = "";
    await using place = await listening((socket) => socket.on("data", (data) => (heard += data)));
    const stop = collectives().heartbeat("127.0.0.1", place.port, "hello", 10, 60_000, () => {});
    await expect.poll(() => heard, { timeout: 30_000 }).toMatch(/^hello\n\n+$/);
    const before = heard.length;
    block(500);
    await expect.poll(() => heard.length - before, { timeout: 30_000 }).toBeGreaterThanOrEqual(5);
    stop();
  });

  it.each(["end", "resetAndDestroy"] as const)("connects again when its connection breaks: %s", async (way) => {
    const hellos: string[] = [];
    await using place = await listening((socket) =>
      socket.once("data", (data) => {
        hellos.push(`${data}`.split("\n")[0]!);
        if (hellos.length < 3) socket[way]();
      }),
    );
    const stop = collectives().heartbeat("127.0.0.1", place.port, "I live", 20, 60_000, () => {});
    await expect.poll(() => hellos, { timeout: 30_000 }).toEqual(["I live", "I live", "I live"]);
    stop();
  });

  it("gets replies while JavaScript is blocked, and reports silence once when they end", async () => {
    const replies = collectives().heartbeatReplies(200);
    let silences = 0;
    const numbers: number[] = [];
    await using place = await listening((socket) => {
      if (numbers.length === 0) numbers.push(replies.add(fdOf(socket.resume())));
    });
    const stop = collectives().heartbeat("127.0.0.1", place.port, "hello", 200, 2000, () => silences++);
    await once(place.server, "connection");
    for (let i = 0; i < 6; i++) {
      block(500);
      await sleep(1); // onSilence is called in the next iteration of the event loop
    }
    expect(silences).toBe(0);
    replies.remove(numbers[0]!);
    await expect.poll(() => silences, { timeout: 30_000 }).toBe(1);
    await sleep(300);
    expect(silences).toBe(1);
    stop();
    replies.stop();
  });

  it("connects anew where replies are missing, and reports no silence if they come there", async () => {
    const replies = collectives().heartbeatReplies(50);
    let silences = 0;
    const numbers: number[] = [];
    await using place = await listening((socket) => numbers.push(replies.add(fdOf(socket.resume()))));
    const stop = collectives().heartbeat("127.0.0.1", place.port, "hello", 100, 60_000, () => silences++);
    await expect.poll(() => numbers.length, { timeout: 30_000 }).toBe(1);
    await sleep(300); // until a reply has come
    replies.remove(numbers[0]!);
    await expect.poll(() => numbers.length, { timeout: 30_000 }).toBe(2);
    expect(silences).toBe(0);
    stop();
    replies.stop();
  });

  it("keeps a second connection whose replies take longer than two intervals", async () => {
    let [connections, replies, silences] = [0, 0, 0];
    await using place = await listening((socket) => {
      connections++;
      socket.on("data", async () => {
        await sleep(600);
        socket.write("\n");
        if (connections === 1) socket.end();
        else replies++;
      });
    });
    const stop = collectives().heartbeat("127.0.0.1", place.port, "hello", 50, 10_000, () => silences++);
    await expect.poll(() => replies, { timeout: 30_000 }).toBeGreaterThan(20);
    expect([connections, silences]).toEqual([2, 0]);
    stop();
  });

  it("reports no silence if it never got a reply", async () => {
    let silences = 0;
    await using place = await listening((socket) => socket.resume());
    const stop = collectives().heartbeat("127.0.0.1", place.port, "hello", 10, 50, () => silences++);
    await sleep(500);
    expect(silences).toBe(0);
    stop();
  });
});
