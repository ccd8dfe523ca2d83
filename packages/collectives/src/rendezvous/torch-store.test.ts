import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { RendezvousError } from "../errors.ts";
import { TorchStore } from "./torch-store.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that sends one of `answers` after each request but the first. */
async function fakeStore(...answers: Buffer[]): Promise<{ port: number; received: () => string }> {
  let received = "";
  const server = createServer((socket) => {
    socket
      .on("error", () => {})
      .on("data", (bytes) => {
        received += bytes.toString("hex");
        const answer = received.length > 10 ? answers.shift() : undefined;
        if (answer) socket.write(answer);
      });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as { port: number }).port, received: () => received };
}

// Against PyTorch's own store: test-e2e/ranks/launchers.test.ts.
describe("torchrun's store", () => {
  it("gets exactly these bytes as requests", async () => {
    const value = Buffer.from("0200000000000000" + "6869", "hex");
    const { port, received } = await fakeStore(Buffer.of(0), value, Buffer.from("0100000000000000", "hex"));
    await using store = await TorchStore.connect("127.0.0.1", port, 300);
    expect(await store.get("ab")).toBe("hi");
    await store.delete("ab");
    const key = "0200000000000000" + "6162";
    expect(received()).toBe(`00cef7853c${"06"}0100000000000000${key}${"03"}${key}${"08"}${key}`);
  });

  it("names rank 0 where it has set nothing before the deadline", async () => {
    const { port } = await fakeStore();
    await using store = await TorchStore.connect("127.0.0.1", port, 2);
    const error = await store.get("where").catch((each: unknown) => each as RendezvousError);
    expect(error).toBeInstanceOf(RendezvousError);
    expect(error).toMatchObject({ missing: [0] });
    expect((error as Error).message).toMatch(
      /^rank 0 has not written its address into torchrun's store at 127\.0\.0\.1:\d+ /,
    );
  });

  it("refuses a server that answers in another protocol", async () => {
    const web = await fakeStore(Buffer.from("HTTP/1.1 400 Bad Request"));
    await using one = await TorchStore.connect("127.0.0.1", web.port, 300);
    await expect(one.get("where")).rejects.toThrow(/answers 72 to a wait: it is not torchrun's store/);
    const endless = await fakeStore(Buffer.of(0), Buffer.alloc(8, 255));
    await using two = await TorchStore.connect("127.0.0.1", endless.port, 300);
    await expect(two.get("where")).rejects.toThrow(/announces 18446744073709551615 bytes/);
    const flood = await fakeStore(Buffer.alloc(1 << 20));
    await using three = await TorchStore.connect("127.0.0.1", flood.port, 300);
    await expect(three.get("a").then(() => three.get("b"))).rejects.toThrow(/sends more than it was asked for/);
  });

  it("fails with a sentence where nothing listens", async () => {
    await expect(TorchStore.connect("127.0.0.1", 1, 0.3)).rejects.toThrow(
      /torchrun's store at 127\.0\.0\.1:1 \(MASTER_ADDR and MASTER_PORT\) does not answer within 0\.3 s/,
    );
  });
});
