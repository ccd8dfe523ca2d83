import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { RendezvousError } from "../errors.ts";
import { type ClientOptions, RendezvousClient } from "./client.ts";
import { type Hello, helloLimit, protocolVersion, sendLine, type Verdict } from "./protocol.ts";
import { type RendezvousOptions, type RendezvousServer, serveRendezvous } from "./server.ts";

const token = "open sesame";
const serve = (options: Partial<RendezvousOptions> = {}) => serveRendezvous({ size: 2, token, ...options });

function join(server: RendezvousServer, rank: number, options: Partial<ClientOptions> = {}, verdicts: Verdict[] = []) {
  const { host, port } = server;
  return RendezvousClient.connect({ host, port, token, rank, size: 2, ...options }, (verdict) =>
    verdicts.push(verdict),
  );
}

const hello = (changes: Partial<Record<keyof Hello, unknown>> = {}) =>
  JSON.stringify({
    terse: protocolVersion,
    token,
    epoch: "0",
    rank: 0,
    size: 2,
    config: "",
    pid: 77,
    host: "there",
    ...changes,
  });

/** Speaks without a client; resolves with all that the server said, when it has closed the connection. */
async function speak(server: RendezvousServer, text: string): Promise<string> {
  const socket = connect(server.port, server.host);
  let heard = "";
  socket.setEncoding("utf8").on("data", (data: string) => {
    heard += data;
  });
  socket.on("error", () => {}); // a reset says no more than a close
  socket.write(text);
  await once(socket, "close");
  return heard;
}

async function rawRank(server: RendezvousServer, rank: number): Promise<Socket> {
  const socket = connect(server.port, server.host);
  socket.write(`${hello({ rank })}\n`);
  await once(socket, "data");
  return socket;
}

describe("the rendezvous", () => {
  it("keeps values, and lets a reader wait for them", async () => {
    await using server = await serve();
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const early = b.get("later");
    await a.set("now", { x: [1, 2] });
    expect(await b.get("now")).toEqual({ x: [1, 2] });
    await a.set("later", "ü\n∞");
    expect(await early).toBe("ü\n∞");
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it("gathers and trades among those who meet", async () => {
    await using server = await serve({ size: 3 });
    const all = await Promise.all([0, 1, 2].map((rank) => join(server, rank, { size: 3 })));
    const gathered = await Promise.all(all.map((client, rank) => client.gather("g", [0, 1, 2], rank * 10)));
    expect(gathered).toEqual([0, 1, 2].map(() => [0, 10, 20]));
    const traded = await Promise.all([2, 0].map((rank) => all[rank]!.trade("t", [2, 0], [`${rank}→2`, `${rank}→0`])));
    expect(traded).toEqual([
      ["2→2", "0→2"],
      ["2→0", "0→0"],
    ]);
    await Promise.all(all.map((client) => client.close()));
  });

  it("names those who do not come to a meeting, and what nobody set", async () => {
    await using server = await serve({ deadlineSeconds: 2 });
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const error = await a.gather("world/lunch", [0, 1], null).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(RendezvousError);
    expect((error as RendezvousError).missing).toEqual([1]);
    expect((error as RendezvousError).message).toBe(
      "rank 1 did not come to world/lunch within 2 s; see what it does, or allow more (deadlineSeconds)",
    );
    await expect(b.get("nothing")).rejects.toThrow("nobody has set nothing within 2 s");
    await Promise.all([a.close(), b.close()]);
  });

  it("does not let a meeting wait for who has left", async () => {
    await using server = await serve();
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const waiting = expect(a.gather("lunch", [0, 1], null)).rejects.toThrow("rank 1 left the world before lunch");
    await b.close();
    await waiting;
    await expect(a.gather("dinner", [0, 1], null)).rejects.toThrow(
      "rank 1 left the world before dinner; see why it ended so early",
    );
    await a.close();
  });

  it("names those who never arrive, to those who have and to those who come later", async () => {
    await using server = await serve({ size: 4, deadlineSeconds: 2 });
    const verdicts: Verdict[] = [];
    const client = await join(server, 2, { size: 4 }, verdicts);
    await expect(client.gather("world/addresses", [0, 1, 2, 3], null)).rejects.toThrow(
      /^ranks 0, 1, 3 of 4 did not arrive at the rendezvous within 2 s; see whether it started/,
    );
    expect(verdicts).toMatchObject([{ kind: "missing", ranks: [0, 1, 3] }]);
    await expect(join(server, 1, { size: 4 })).rejects.toThrow("ranks 0, 1, 3 of 4 did not arrive");
    await client.close();
  });

  it("waits for ever when it is allowed to", async () => {
    await using server = await serve({ deadlineSeconds: Number.POSITIVE_INFINITY });
    const [a, b] = await Promise.all([
      join(server, 0, { deadlineSeconds: Number.POSITIVE_INFINITY }),
      join(server, 1, { deadlineSeconds: 1e9 }),
    ]);
    const early = a.gather("g", [0, 1], 1);
    await sleep(200); // a timer that is too long for Node would be over
    expect(await Promise.all([early, b.gather("g", [0, 1], 2)])).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await Promise.all([a.close(), b.close()]);
  });

  it("tells everybody at once who is lost, and nobody when one leaves with a goodbye", async () => {
    await using server = await serve({ size: 3 });
    const verdicts: Verdict[] = [];
    const [a, b] = await Promise.all([join(server, 0, { size: 3 }, verdicts), join(server, 1, { size: 3 }, verdicts)]);
    const c = connect(server.port, server.host);
    c.write(`${hello({ rank: 2, size: 3 })}\n`);
    await once(c, "data");
    await b.close();
    expect(verdicts).toEqual([]);
    const meeting = a.gather("never", [0, 2], null);
    c.destroy();
    await expect(meeting).rejects.toThrow(
      "rank 2 (pid 77 on there) is lost: its process ended, or its connection broke, without a goodbye; see what it said last",
    );
    expect(verdicts).toMatchObject([{ kind: "lost", rank: 2 }]);
    expect(await server.verdict).toEqual(verdicts[0]);
    await a.close();
  });

  it("takes the first of two verdicts", async () => {
    await using server = await serve();
    const verdicts: Verdict[] = [];
    const [a, b] = await Promise.all([join(server, 0, {}, verdicts), join(server, 1)]);
    b.abort("world", "aborted", "first");
    b.abort("world", "aborted", "second");
    await expect(a.get("x")).rejects.toThrow("first");
    await expect(a.get("x")).rejects.toThrow("first");
    expect(verdicts.length).toBe(1);
    await Promise.all([a.close(), b.close()]);
  });

  it("ends a group within the world without ending the world", async () => {
    await using server = await serve();
    const verdicts: Verdict[] = [];
    const [a, b] = await Promise.all([join(server, 0, {}, verdicts), join(server, 1)]);
    const inner = a.gather("world/split-0/1/leave", [0, 1], null);
    const outer = a.gather("world/addresses", [0, 1], "a");
    b.abort("world/split-0/1", "mismatch", "they differ");
    await expect(inner).rejects.toThrow("they differ");
    expect(await b.gather("world/addresses", [0, 1], "b")).toEqual(["a", "b"]);
    expect(await outer).toEqual(["a", "b"]);
    expect(verdicts).toMatchObject([{ kind: "abort", group: "world/split-0/1" }]);
    await Promise.all([a.close(), b.close()]);
  });

  it("calls a silent rank lost, if it promised to beat", async () => {
    await using server = await serve({ silenceSeconds: 2 });
    const quiet = await join(server, 1); // never beats, so its silence means nothing
    const beating = await join(server, 0);
    const { host, port, hello: line } = beating.beat;
    const beat = connect(port, host);
    beat.write(`${line}\n\n`); // … and then no more
    expect(await server.verdict).toMatchObject({
      kind: "lost",
      rank: 0,
      message: `rank 0 (pid ${process.pid} on ${hostname()}) is lost: it has shown no sign of life for 2 s: stopped, or its machine is not reachable`,
    });
    beat.destroy();
    await Promise.all([quiet.close(), beating.close()]);
  });

  it("says when it hears a rank's heartbeat", async () => {
    await using server = await serve();
    const client = await join(server, 1);
    let heard = false;
    const beating = client.beating().then(() => {
      heard = true;
    });
    await client.set("anything", 1);
    expect(heard).toBe(false);
    const beat = connect(server.port, server.host);
    beat.write(`${hello({ rank: 1, pid: process.pid, host: hostname(), beat: true })}\n`);
    await beating;
    beat.destroy();
    await client.close();
  });

  it("says that it is gone when it goes", async () => {
    const server = await serve();
    const verdicts: Verdict[] = [];
    const client = await join(server, 0, {}, verdicts);
    const waiting = expect(client.get("x")).rejects.toThrow(/^the rendezvous at 127\.0\.0\.1:\d+ is gone/);
    await server.close();
    await waiting;
    expect(verdicts).toMatchObject([{ kind: "refused" }]);
    await client.close();
  });

  it("is lost with the rank that holds it", async () => {
    const server = await serve({ holder: 0 });
    const client = await join(server, 1);
    const waiting = expect(client.get("x")).rejects.toThrow(/^rank 0 is lost: the rendezvous that it held/);
    await server.close();
    await waiting;
    await client.close();
  });
});

describe("a rendezvous that welcomes and then says nothing", () => {
  it.each([
    [1, "rank 1, which holds the rendezvous, is lost: it has shown no sign of life for 2 s: stopped, or its machine"],
    [null, "the rendezvous is lost: it has shown no sign of life for 2 s: stopped, or its machine"],
  ])("is given up after its own deadline: held by rank %s", async (holder, sentence) => {
    const sockets: Socket[] = [];
    const stopped = createServer((socket) => {
      sockets.push(socket);
      sendLine(socket, { welcome: true, holder, silenceSeconds: 1, deadlineSeconds: 1 });
    });
    await new Promise<void>((resolve) => stopped.listen(0, "127.0.0.1", resolve));
    const { port } = stopped.address() as AddressInfo;
    const verdicts: Verdict[] = [];
    const place = { host: "127.0.0.1", port, token, rank: 0, size: 2 };
    const client = await RendezvousClient.connect(place, (verdict) => verdicts.push(verdict));
    await expect(client.gather("world/addresses", [0, 1], null)).rejects.toThrow(sentence);
    expect(verdicts).toMatchObject([holder === null ? { kind: "refused" } : { kind: "lost", rank: 1 }]);
    for (const socket of sockets) socket.destroy();
    await client.close();
    stopped.close();
  });
});

describe("the rendezvous refuses, in a sentence,", () => {
  it.each([
    ["a wrong token", { token: "open barley" }, "the token is wrong; TERSE_TOKEN must be the one"],
    ["no token", { token: undefined }, "the token is wrong"],
    ["another protocol", { terse: 0 }, "no hello of that version"],
    ["a rank that is none", { rank: 2 }, "there is no rank 2 in a world of 2; RANK must be 0 to 1"],
    ["a negative rank", { rank: -1 }, "there is no rank -1"],
    ["a rank and a half", { rank: 0.5 }, "the hello is not complete"],
    [
      "another attempt",
      { epoch: "1" },
      "this is attempt 0 of the run, and rank 0 (pid 77) is of attempt 1; it is left over, and may be ended",
    ],
    ["a hello without a host", { host: undefined }, "the hello is not complete"],
    ["a heartbeat of nobody", { beat: true }, "this heartbeat belongs to no rank"],
  ])("%s", async (_, changes, sentence) => {
    await using server = await serve();
    const heard = await speak(server, `${hello(changes)}\n`);
    expect((JSON.parse(heard) as { refused: string }).refused).toContain(sentence);
    expect(heard).not.toContain(token);
    // Nobody else is harmed.
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it.each([
    ["after a wrong token", [{ token: "open barley" }, {}]],
    ["after another attempt", [{ epoch: "7" }, {}]],
    ["however many it brings at once", Array.from({ length: 40 }, (_, i) => ({ token: `guess ${i}` }))],
  ])("a second hello on one connection: %s", async (_, all) => {
    await using server = await serve();
    const heard = await speak(server, `${all.map((changes) => hello(changes)).join("\n")}\n`);
    expect(heard.trim().split("\n").length).toBe(1);
    expect(JSON.parse(heard)).toEqual({ refused: expect.any(String) });
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it("another world size, and tells all who wait", async () => {
    await using server = await serve();
    const client = await join(server, 0);
    const sentence =
      "rank 1 (pid 77 on there) was started for a world of 5 ranks, and this world has 2; WORLD_SIZE must be the same for all";
    const waiting = expect(client.get("x")).rejects.toThrow(sentence);
    expect(await speak(server, `${hello({ rank: 1, size: 5 })}\n`)).toContain(sentence);
    await waiting;
    await client.close();
  });

  it("a second process of one rank, and keeps the first", async () => {
    await using server = await serve();
    const first = await join(server, 0);
    await expect(join(server, 0)).rejects.toThrow(
      `rank 0 is already here (pid ${process.pid} on ${hostname()}); every process needs a RANK of its own`,
    );
    const second = await join(server, 1);
    expect(await Promise.all([first.gather("g", [0, 1], 1), second.gather("g", [0, 1], 2)])).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await Promise.all([first.close(), second.close()]);
  });

  it.each([
    ["what is not JSON", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a line is not JSON"],
    ["what is no object", "[1]\n", "a line is not a JSON object"],
    ["a line without an end", "x".repeat(helloLimit + 1), `a line is longer than ${helloLimit} bytes`],
    ["bytes that are no text", Buffer.from([0xff, 0xfe, 0x0a]).toString("latin1"), "a line is not JSON"],
    ["an empty line", "\n", "the first line was no hello"],
  ])("%s from somebody unknown", async (_, text, sentence) => {
    await using server = await serve();
    expect(await speak(server, text)).toContain(sentence);
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
  });

  it.each([
    ["garbage", "not JSON\n", "a line is not JSON"],
    ["an unknown request", '{"id":1,"do":"format the disk"}\n', "a request is unknown"],
    ["a meeting without it", '{"id":1,"do":"gather","key":"k","members":[1]}\n', "a meeting names no such members"],
    ["a meeting of nobody", '{"id":1,"do":"gather","key":"k","members":[0,99]}\n', "a meeting names no such members"],
    [
      "a lopsided trade",
      '{"id":1,"do":"trade","key":"k","members":[0,1],"values":[1]}\n',
      "a trade has not one value per member",
    ],
    [
      "a meeting without a name",
      '{"id":1,"do":"gather","key":{"toString":1},"members":[0,1]}\n',
      "a meeting has no name",
    ],
    ["a leave of nothing", '{"id":1,"do":"leave","group":{"toString":1},"members":[0,1]}\n', "a meeting has no name"],
    ["a get of nothing", '{"id":1,"do":"get"}\n', "a get has no key"],
  ])("%s from a rank, which is then lost to the others", async (_, text, sentence) => {
    await using server = await serve();
    const other = await join(server, 1);
    const waiting = expect(other.get("x")).rejects.toThrow(`it sent garbage to the rendezvous: ${sentence}`);
    const socket = await rawRank(server, 0);
    socket.write(text);
    await waiting;
    socket.destroy();
    await other.close();
  });

  it("who says little, and slowly", async () => {
    await using server = await serve();
    const socket = connect(server.port, server.host);
    let heard = "";
    socket.on("data", (data) => {
      heard += data;
    });
    socket.on("error", () => {}); // it goes on talking
    const talks = setInterval(() => socket.write("x"), 100);
    await once(socket, "close");
    clearInterval(talks);
    expect(JSON.parse(heard)).toEqual({ refused: "no hello came within 10 s" });
  });

  it("to listen without a token where others reach it", async () => {
    await expect(serveRendezvous({ size: 2, token: "", host: "0.0.0.0" })).rejects.toThrow(
      "the rendezvous would listen on 0.0.0.0 without a token; set TERSE_TOKEN",
    );
    await (await serveRendezvous({ size: 2, token: "" })).close();
  });

  it("to listen where it cannot", async () => {
    await using server = await serve();
    await expect(serve({ port: server.port })).rejects.toThrow(
      `the rendezvous cannot listen on 127.0.0.1:${server.port}: it is in use; choose another port`,
    );
    await expect(serve({ host: "192.0.2.1" })).rejects.toThrow("this is not an address of this machine");
    await expect(serve({ size: 0 })).rejects.toThrow(RangeError);
  });
});

describe("a rank that looks for the rendezvous", () => {
  it("waits for it to appear", async () => {
    await using first = await serve();
    const { port } = first;
    await first.close();
    const joining = RendezvousClient.connect({ host: "127.0.0.1", port, token, rank: 0, size: 1 }, () => {});
    await using second = await serveRendezvous({ size: 1, token, port });
    await (await joining).close();
    await second.finished;
  });

  it("does not take another program for it", async () => {
    const other = createServer((socket) => socket.end("220 smtp.example.org\r\n"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await expect(
      RendezvousClient.connect({ host: "127.0.0.1", port, token, rank: 0, size: 2, deadlineSeconds: 5 }, () => {}),
    ).rejects.toThrow(`what listens at 127.0.0.1:${port} is not a terse rendezvous`);
    other.close();
  });

  it("meets over IPv6 too", async (context) => {
    const server = await serve({ host: "::1" }).catch(() => undefined);
    if (!server) return context.skip("this machine has no IPv6");
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    expect(a.localAddress).toBe("::1");
    await Promise.all([a.close(), b.close()]);
    await server.close();
  });
});
