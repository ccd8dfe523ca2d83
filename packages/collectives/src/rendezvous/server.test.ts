import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { RendezvousError } from "../errors.ts";
import { type ClientOptions, RendezvousClient } from "./client.ts";
import { sendLine } from "./lines.ts";
import { type FromRank, type GroupFailure, type Hello, helloLimit, protocolVersion } from "./protocol.ts";
import { serveRendezvous } from "./server.ts";
import type { RendezvousOptions, RendezvousServer } from "./server-options.ts";

const token = "open sesame";
const serve = (options: Partial<RendezvousOptions> = {}) => serveRendezvous({ size: 2, token, ...options });

function join(
  server: RendezvousServer,
  rank: number,
  options: Partial<ClientOptions> = {},
  failures: GroupFailure[] = [],
) {
  const { host, port } = server;
  return RendezvousClient.connect({ host, port, token, rank, size: 2, ...options }, (failure) =>
    failures.push(failure),
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

/** Sends text without a client. Resolves with the server's whole answer when it has closed the connection. */
async function sendRaw(server: RendezvousServer, text: string): Promise<string> {
  const socket = connect(server.port, server.host);
  let answer = "";
  socket.setEncoding("utf8").on("data", (data: string) => {
    answer += data;
  });
  socket.on("error", () => {}); // the close event follows
  socket.write(text);
  await once(socket, "close");
  return answer;
}

async function rawRank(server: RendezvousServer, rank: number): Promise<Socket> {
  const socket = connect(server.port, server.host);
  socket.write(`${hello({ rank })}\n`);
  await once(socket, "data");
  return socket;
}

const long = "x".repeat((4 << 20) >> 1);

function flood(socket: Socket, line: (id: number) => FromRank, count = 70_000): void {
  for (let id = 0; id < count; id++) sendLine(socket, line(id));
}

// Where tests run at once, what one asserts later it asserts by an `expect` of its own.
describe.concurrent("the rendezvous", () => {
  it("stores values, and a get waits for its value", async () => {
    await using server = await serve();
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const waiting = b.get("later");
    await a.set("now", { x: [1, 2] });
    expect(await b.get("now")).toEqual({ x: [1, 2] });
    await a.set("later", "ü\n∞");
    expect(await waiting).toBe("ü\n∞");
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it("runs allGather and allToAll among the members", async () => {
    await using server = await serve({ size: 3 });
    const all = await Promise.all([0, 1, 2].map((rank) => join(server, rank, { size: 3 })));
    const gathered = await Promise.all(all.map((client, rank) => client.allGather("g", [0, 1, 2], rank * 10)));
    expect(gathered).toEqual([0, 1, 2].map(() => [0, 10, 20]));
    const exchanged = await Promise.all(
      [2, 0].map((rank) => all[rank]!.allToAll("t", [2, 0], [`${rank}→2`, `${rank}→0`])),
    );
    expect(exchanged).toEqual([
      ["2→2", "0→2"],
      ["2→0", "0→0"],
    ]);
    await Promise.all(all.map((client) => client.close()));
  });

  it("names the ranks that do not make a call, and the key that no rank has set", async ({ expect }) => {
    await using server = await serve({ deadlineSeconds: 5 });
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const nothing = expect(b.get("nothing")).rejects.toThrow("no rank has set nothing within 5 s");
    const error = await a.allGather("world/lunch", [0, 1], null).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(RendezvousError);
    expect((error as RendezvousError).missing).toEqual([1]);
    expect((error as RendezvousError).message).toBe(
      "rank 1 did not reach world/lunch within 5 s; check what it does, or raise deadlineSeconds",
    );
    await nothing;
    await Promise.all([a.close(), b.close()]);
  });

  it("does not wait in a call for a rank that has left", async ({ expect }) => {
    await using server = await serve();
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const waiting = expect(a.allGather("lunch", [0, 1], null)).rejects.toThrow("rank 1 left the world before lunch");
    await b.close();
    await waiting;
    await expect(a.allGather("dinner", [0, 1], null)).rejects.toThrow(
      "rank 1 left the world before dinner; check why it ended so early",
    );
    await a.close();
  });

  it("names the ranks that never connect, to those that have and to those that connect later", async () => {
    await using server = await serve({ size: 4, deadlineSeconds: 5 });
    const failures: GroupFailure[] = [];
    const client = await join(server, 2, { size: 4 }, failures);
    await expect(client.allGather("world/addresses", [0, 1, 2, 3], null)).rejects.toThrow(
      /^ranks 0, 1, 3 of 4 did not connect to the rendezvous within 5 s; check that the process started/,
    );
    expect(failures).toMatchObject([{ kind: "missing", ranks: [0, 1, 3] }]);
    await expect(join(server, 1, { size: 4 })).rejects.toThrow("ranks 0, 1, 3 of 4 did not connect");
    await client.close();
  });

  it("waits without limit when there is no deadline", async () => {
    await using server = await serve({ deadlineSeconds: Number.POSITIVE_INFINITY });
    const [a, b] = await Promise.all([
      join(server, 0, { deadlineSeconds: Number.POSITIVE_INFINITY }),
      join(server, 1, { deadlineSeconds: 1e9 }),
    ]);
    const firstCall = a.allGather("g", [0, 1], 1);
    await sleep(200); // a timer that is too long for Node would fire at once
    expect(await Promise.all([firstCall, b.allGather("g", [0, 1], 2)])).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await Promise.all([a.close(), b.close()]);
  });

  it("reports a lost rank to all ranks at once, and reports nothing when a rank leaves", async () => {
    await using server = await serve({ size: 3 });
    const failures: GroupFailure[] = [];
    const [a, b] = await Promise.all([join(server, 0, { size: 3 }, failures), join(server, 1, { size: 3 }, failures)]);
    const c = connect(server.port, server.host);
    c.write(`${hello({ rank: 2, size: 3 })}\n`);
    await once(c, "data");
    await b.close();
    expect(failures).toEqual([]);
    const call = a.allGather("never", [0, 2], null);
    c.destroy();
    await expect(call).rejects.toThrow(
      "rank 2 (pid 77 on there) is lost: its process ended, or its connection broke, before it left; read its last output",
    );
    expect(failures).toMatchObject([{ kind: "lost", rank: 2 }]);
    expect(await server.failure).toEqual(failures[0]);
    await a.close();
  });

  it("reports the first of two failures", async () => {
    await using server = await serve();
    const failures: GroupFailure[] = [];
    const [a, b] = await Promise.all([join(server, 0, {}, failures), join(server, 1)]);
    b.abort("world", "aborted", "first");
    b.abort("world", "aborted", "second");
    await expect(a.get("x")).rejects.toThrow("first");
    await expect(a.get("x")).rejects.toThrow("first");
    expect(failures.length).toBe(1);
    await Promise.all([a.close(), b.close()]);
  });

  it("ends a group within the world without ending the world", async () => {
    await using server = await serve();
    const failures: GroupFailure[] = [];
    const [a, b] = await Promise.all([join(server, 0, {}, failures), join(server, 1)]);
    const inner = a.allGather("world/split-0/1/leave", [0, 1], null);
    const outer = a.allGather("world/addresses", [0, 1], "a");
    b.abort("world/split-0/1", "mismatch", "they differ");
    await expect(inner).rejects.toThrow("they differ");
    expect(await b.allGather("world/addresses", [0, 1], "b")).toEqual(["a", "b"]);
    expect(await outer).toEqual(["a", "b"]);
    expect(failures).toMatchObject([{ kind: "abort", group: "world/split-0/1" }]);
    await Promise.all([a.close(), b.close()]);
  });

  it("reports a silent rank as lost if it has a heartbeat", async () => {
    await using server = await serve({ outageSeconds: 1 });
    const quiet = await join(server, 1); // without a heartbeat, so that its silence means nothing
    const silent = await join(server, 0);
    const { host, port, hello: line } = silent.heartbeat;
    const beat = connect(port, host);
    beat.write(`${line}\n\n`); // one beat, and then no more
    expect(await server.failure).toMatchObject({
      kind: "lost",
      rank: 0,
      message: `rank 0 (pid ${process.pid} on ${hostname()}) is lost: no heartbeat for 1.8 s; its process is stopped, or its machine is not reachable`,
    });
    beat.destroy();
    await Promise.all([quiet.close(), silent.close()]);
  });

  it("keeps the newest connection of a rank's heartbeat, and no other", async ({ expect }) => {
    await using server = await serve();
    const rank = await rawRank(server, 0);
    const beats = [0, 1].map(() => connect(server.port, server.host).on("error", () => {}));
    const closed = once(beats[0]!, "close");
    for (const beat of beats) {
      beat.write(`${hello({ beat: true })}\n`);
      await sleep(50); // until the server has read it
    }
    await closed;
    expect(beats[1]!.destroyed).toBe(false);
    for (const socket of [rank, ...beats]) socket.destroy();
  });

  it("reads a long line that comes byte by byte", async ({ expect }) => {
    await using server = await serve();
    const rank = await rawRank(server, 0);
    const answered = once(rank.setNoDelay(), "data");
    for (const letter of `${JSON.stringify({ id: 5, do: "set", key: "k", value: "x".repeat(3000) })}\n`) {
      rank.write(letter);
      await new Promise(setImmediate);
    }
    expect(JSON.parse(`${(await answered)[0]}`)).toEqual({ id: 5, value: null });
    rank.destroy();
  });

  it("answers when it hears a rank's heartbeat", async () => {
    await using server = await serve();
    const client = await join(server, 1);
    let isHeard = false;
    const beating = client.heartbeatHeard().then(() => {
      isHeard = true;
    });
    await client.set("anything", 1);
    expect(isHeard).toBe(false);
    const beat = connect(server.port, server.host);
    beat.write(`${hello({ rank: 1, pid: process.pid, host: hostname(), beat: true })}\n`);
    await beating;
    beat.destroy();
    await client.close();
  });

  it("fails its clients when it ends", async ({ expect }) => {
    const server = await serve();
    const failures: GroupFailure[] = [];
    const client = await join(server, 0, {}, failures);
    const waiting = expect(client.get("x")).rejects.toThrow(/^the rendezvous at 127\.0\.0\.1:\d+ is gone/);
    await server.close();
    await waiting;
    expect(failures).toMatchObject([{ kind: "refused" }]);
    await client.close();
  });

  it("ends although a rank does not read what it was sent", async ({ expect }) => {
    const server = await serve();
    const a = await join(server, 0);
    for (const key of ["x", "y"]) await a.set(key, long);
    const deaf = await rawRank(server, 1);
    deaf.pause();
    for (let id = 0; id < 12; id++) sendLine(deaf, { id, do: "get", key: id % 2 ? "x" : "y" });
    await a.set("last", null); // the requests before have arrived
    await sleep(100);
    const ended = await Promise.race([server.close().then(() => true), sleep(10_000)]);
    deaf.destroy();
    expect(ended).toBe(true);
    await a.close();
  });

  it("has an end for what a rank still asks when it leaves", async ({ expect }) => {
    await using server = await serve();
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    const asked = expect(a.get("nothing")).rejects.toThrow("this rank has left the rendezvous");
    await a.close();
    expect(await Promise.race([asked.then(() => true), sleep(10_000)])).toBe(true);
    await b.close();
  });

  it("is lost with the rank that runs it", async ({ expect }) => {
    const server = await serve({ holder: 0 });
    const client = await join(server, 1);
    const waiting = expect(client.get("x")).rejects.toThrow(/^rank 0 is lost: the rendezvous that it ran/);
    await server.close();
    await waiting;
    await client.close();
  });
});

describe.concurrent("a rendezvous that stops answering after its welcome", () => {
  it.each([
    [1, "rank 1, which runs the rendezvous, is lost: no heartbeat for 2.4 s; its process is stopped, or its machine"],
    [null, "the rendezvous is lost: no heartbeat for 2.4 s; its process is stopped, or its machine"],
  ])("counts as lost after its own deadline: run by rank %s", async (holder, sentence) => {
    const sockets: Socket[] = [];
    const stopped = createServer((socket) => {
      sockets.push(socket);
      sendLine(socket, { welcome: true, holder, outageSeconds: 0.8, deadlineSeconds: 1 });
    });
    await new Promise<void>((resolve) => stopped.listen(0, "127.0.0.1", resolve));
    const { port } = stopped.address() as AddressInfo;
    const failures: GroupFailure[] = [];
    const place = { host: "127.0.0.1", port, token, rank: 0, size: 2 };
    const client = await RendezvousClient.connect(place, (failure) => failures.push(failure));
    await expect(client.allGather("world/addresses", [0, 1], null)).rejects.toThrow(sentence);
    expect(failures).toMatchObject([holder === null ? { kind: "refused" } : { kind: "lost", rank: 1 }]);
    for (const socket of sockets) socket.destroy();
    await client.close();
    stopped.close();
  });
});

describe("the rendezvous refuses, with a reason,", () => {
  it.each([
    ["a wrong token", { token: "open barley" }, "the token is wrong; TERSE_TOKEN must be the one"],
    ["no token", { token: undefined }, "the token is wrong"],
    ["another protocol", { terse: 0 }, "no hello of that version"],
    ["a rank beyond the world", { rank: 2 }, "there is no rank 2 in a world of 2; RANK must be 0 to 1"],
    ["a negative rank", { rank: -1 }, "there is no rank -1"],
    [
      "a rank beyond a world of its own",
      { rank: 1, size: 1 },
      "there is no rank 1 in a world of 1; RANK must be 0 to 0",
    ],
    ["a rank that is no whole number", { rank: 0.5 }, "the hello is not complete"],
    [
      "another attempt",
      { epoch: "1" },
      "this is attempt 0 of the run, and rank 0 (pid 77) is of attempt 1; end that process",
    ],
    ["a hello without a host", { host: undefined }, "the hello is not complete"],
    ["a heartbeat of a rank that has not joined", { beat: true }, "this heartbeat belongs to no rank"],
  ])("%s", async (_, changes, sentence) => {
    await using server = await serve();
    const answer = await sendRaw(server, `${hello(changes)}\n`);
    expect((JSON.parse(answer) as { refused: string }).refused).toContain(sentence);
    expect(answer).not.toContain(token);
    // The world can still be joined.
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it.each([
    ["after a wrong token", [{ token: "open barley" }, {}]],
    ["after another attempt", [{ epoch: "7" }, {}]],
    ["after many wrong tokens", Array.from({ length: 40 }, (_, i) => ({ token: `guess ${i}` }))],
  ])("a second hello on one connection: %s", async (_, all) => {
    await using server = await serve();
    const answer = await sendRaw(server, `${all.map((changes) => hello(changes)).join("\n")}\n`);
    expect(answer.trim().split("\n").length).toBe(1);
    expect(JSON.parse(answer)).toEqual({ refused: expect.any(String) });
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
    await server.finished;
  });

  it.concurrent("a connection whose hello does not end in time", async () => {
    await using server = await serve({ outageSeconds: 0.5 });
    const socket = connect(server.port, server.host);
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    socket.on("error", () => {}); // the writes after the refusal fail
    const writes = setInterval(() => socket.write("x"), 100);
    await once(socket, "close");
    clearInterval(writes);
    expect(JSON.parse(answer)).toEqual({ refused: "no hello came within 5 s" });
  });

  it.concurrent("a wrong token, with one warning at once for each rank that is awaited, and says so at the deadline", async () => {
    await using server = await serve({ size: 3, deadlineSeconds: 5 });
    const warnings: Error[] = [];
    const listen = (warning: Error) => warnings.push(warning);
    process.on("warning", listen);
    const client = await join(server, 0, { size: 3 });
    for (const rank of [0, 1, 1, 3, -1, 0.5, "1", undefined])
      await sendRaw(server, `${hello({ rank, size: 3, token: "open barley" })}\n`);
    process.off("warning", listen);
    const sentence =
      "a process at 127.0.0.1 that calls itself rank 1 was refused, because its token is wrong; TERSE_TOKEN must be the same for all ranks";
    expect(warnings.map(({ message }) => message)).toEqual([sentence]);
    await expect(client.get("x")).rejects.toThrow(
      `ranks 1, 2 of 3 did not connect to the rendezvous within 5 s; ${sentence}`,
    );
    await client.close();
  });

  it.each<[string, (socket: Socket) => void, string]>([
    [
      "keys without end",
      (socket) => flood(socket, (id) => ({ id, do: "set", key: `${id}`, value: 0 })),
      "65536, or than",
    ],
    [
      "long values without end",
      (socket) => flood(socket, (id) => ({ id, do: "set", key: `${id}`, value: long }), 40),
      "or than 64 MiB",
    ],
    [
      "requests without answers",
      (socket) => flood(socket, (id) => ({ id, do: "get", key: "never" })),
      "65536, or than",
    ],
    [
      "calls without end",
      (socket) => flood(socket, (id) => ({ id, do: "allGather", key: `${id}`, members: [0, 1], value: 0 })),
      "65536, or than",
    ],
    [
      "values that no answer has room for",
      (socket) => sendLine(socket, { id: 0, do: "allGather", key: "both", members: [0, 1], value: long }),
      "are longer than 4194304 bytes together",
    ],
    [
      "two requests with one number",
      (socket) => flood(socket, () => ({ id: 3, do: "get", key: "x" }), 2),
      "request 3 has",
    ],
    [
      "a rank that does not read its answers",
      (socket) => {
        socket.pause();
        sendLine(socket, { id: 0, do: "set", key: "long", value: long });
        flood(socket, (id) => ({ id: id + 1, do: "get", key: "long" }), 100);
      },
      "it has not read 64 MiB",
    ],
  ])("%s, in the name of a rank", async (_, attack, sentence) => {
    await using server = await serve({ deadlineSeconds: 200 });
    const client = await join(server, 0);
    client.allGather("both", [0, 1], long).catch(() => {});
    const waiting = expect(client.get("x")).rejects.toThrow(sentence);
    const attacker = await rawRank(server, 1);
    attacker.on("error", () => {});
    attack(attacker);
    await waiting;
    attacker.destroy();
    await client.close();
    expect(await server.failure).toMatchObject({ kind: "lost", rank: 1 });
  });

  it("another world size, and tells all ranks that wait", async () => {
    await using server = await serve();
    const client = await join(server, 0);
    const sentence =
      "rank 1 (pid 77 on there) was started for a world of 5 ranks, and this world has 2; WORLD_SIZE must be the same for all";
    const waiting = expect(client.get("x")).rejects.toThrow(sentence);
    expect(await sendRaw(server, `${hello({ rank: 1, size: 5 })}\n`)).toContain(sentence);
    await waiting;
    await client.close();
  });

  it("a second process of one rank, and keeps the first", async () => {
    await using server = await serve();
    const first = await join(server, 0);
    await expect(join(server, 0)).rejects.toThrow(
      `rank 0 has already joined (pid ${process.pid} on ${hostname()}); every process needs a RANK of its own`,
    );
    const second = await join(server, 1);
    expect(await Promise.all([first.allGather("g", [0, 1], 1), second.allGather("g", [0, 1], 2)])).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await Promise.all([first.close(), second.close()]);
  });

  it.each([
    ["a line that is not JSON", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a line is not JSON"],
    ["a line that is no object", "[1]\n", "a line is not a JSON object"],
    ["a line without an end", "x".repeat(helloLimit + 1), `a line is longer than ${helloLimit} bytes`],
    ["bytes that are not UTF-8", Buffer.from([0xff, 0xfe, 0x0a]).toString("latin1"), "a line is not JSON"],
    ["an empty line", "\n", "the first line was no hello"],
  ])("%s from a connection without a hello", async (_, text, sentence) => {
    await using server = await serve();
    expect(await sendRaw(server, text)).toContain(sentence);
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    await Promise.all([a.close(), b.close()]);
  });

  it.each([
    ["a line that is not JSON", "not JSON\n", "a line is not JSON"],
    ["an unknown request", '{"id":1,"do":"format the disk"}\n', "a request has an unknown name"],
    [
      "an allGather without it as a member",
      '{"id":1,"do":"allGather","key":"k","members":[1]}\n',
      "allGather: its members are not ranks of this world, or this rank is not among them",
    ],
    [
      "an allGather of a rank that does not exist",
      '{"id":1,"do":"allGather","key":"k","members":[0,99]}\n',
      "allGather: its members are not ranks of this world, or this rank is not among them",
    ],
    [
      "an allToAll with too few values",
      '{"id":1,"do":"allToAll","key":"k","members":[0,1],"values":[1]}\n',
      "allToAll: it must have one value per member",
    ],
    [
      "an allGather without a key",
      '{"id":1,"do":"allGather","key":{"toString":1},"members":[0,1]}\n',
      "allGather: it has no key",
    ],
    [
      "a leave without a group",
      '{"id":1,"do":"leave","group":{"toString":1},"members":[0,1]}\n',
      "leave: it has no key",
    ],
    ["a get without a number", '{"id":"1","do":"get","key":"k"}\n', "get: it has no number"],
    [
      "an allGather that names a rank twice",
      '{"id":1,"do":"allGather","key":"k","members":[0,0]}\n',
      "allGather: its members are not ranks of this world, or this rank is not among them",
    ],
    ["an abort without a reason", '{"do":"abort","group":"world","message":"x"}\n', "an abort has no such reason"],
    [
      "a value that is nested too deep",
      `{"id":1,"do":"set","key":"k","value":${"[".repeat(1e5)}${"]".repeat(1e5)}}\n`,
      "a line is nested more than 64 deep",
    ],
    ["a get without a key", '{"id":1,"do":"get"}\n', "get: it has no key"],
  ])("%s from a rank, which then counts as lost", async (_, text, sentence) => {
    await using server = await serve();
    const other = await join(server, 1);
    const waiting = expect(other.get("x")).rejects.toThrow(`it sent invalid data to the rendezvous: ${sentence}`);
    const socket = await rawRank(server, 0);
    socket.write(text);
    await waiting;
    socket.destroy();
    await other.close();
  });

  it("to listen without a token at an address that other machines reach", async () => {
    await expect(serveRendezvous({ size: 2, token: "", host: "0.0.0.0" })).rejects.toThrow(
      "the rendezvous would listen on 0.0.0.0 without a token; set TERSE_TOKEN",
    );
    await (await serveRendezvous({ size: 2, token: "" })).close();
  });

  it("to listen at an address or port that it cannot have", async () => {
    await using server = await serve();
    await expect(serve({ port: server.port })).rejects.toThrow(
      `the rendezvous cannot listen on 127.0.0.1:${server.port}: it is in use; choose another port`,
    );
    await expect(serve({ host: "192.0.2.1" })).rejects.toThrow("this is not an address of this machine");
    await expect(serve({ size: 0 })).rejects.toThrow(RangeError);
  });
});

describe("a client of the rendezvous", () => {
  it("retries until the server listens", async () => {
    await using first = await serve();
    const { port } = first;
    await first.close();
    const joining = RendezvousClient.connect({ host: "127.0.0.1", port, token, rank: 0, size: 1 }, () => {});
    await using second = await serveRendezvous({ size: 1, token, port });
    await (await joining).close();
    await second.finished;
  });

  it("refuses another program at the port", async () => {
    const other = createServer((socket) => socket.end("220 smtp.example.org\r\n"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await expect(
      RendezvousClient.connect({ host: "127.0.0.1", port, token, rank: 0, size: 2, deadlineSeconds: 5 }, () => {}),
    ).rejects.toThrow(`what listens at 127.0.0.1:${port} is not a terse rendezvous`);
    other.close();
  });

  it("connects over IPv6 too", async (context) => {
    const server = await serve({ host: "::1" }).catch(() => undefined);
    if (!server) return context.skip("this machine has no IPv6");
    const [a, b] = await Promise.all([join(server, 0), join(server, 1)]);
    expect(a.localAddress).toBe("::1");
    await Promise.all([a.close(), b.close()]);
    await server.close();
  });
});
