import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { collectives, kinds, type NativeFailure } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import type { Group } from "../group.ts";
import { engineContract } from "../testing/engine-contract/engine-contract.ts";
import { InProcessWorlds } from "../testing/in-process-worlds.ts";

const worlds = new InProcessWorlds();

describe("tcp", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("tcp", (size) => worlds.open("tcp", size));
});

describe("tcp between machines", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  const apart = (size: number) => worlds.open("tcp", size, (rank) => ({ address: `127.0.0.${rank + 1}` }));
  engineContract("tcp, every rank on an address of its own", apart, { sizes: [3, 4] });

  it.each([3, 4, 5, 6])("exchanges parts of any lengths, many at once, among %i ranks", async (ranks) => {
    const groups = await apart(ranks);
    const lengths = [0, 1, 8192, 8193, 16_384, 16_385, 32_769, 65_536, 65_537, 100_000, 1_100_000];
    const lengthOf = (round: number, from: number, to: number) => lengths[(5 * round + 3 * from + 7 * to) % 11]!;
    const peers = groups.map(({ rank }) => rank);
    await Promise.all(
      groups.map(async (group) => {
        const rounds = Array.from({ length: 11 }, async (_, round) => {
          const outgoing = peers.map((to) =>
            new Uint8Array(lengthOf(round, group.rank, to)).fill(10 * group.rank + to),
          );
          const incoming = peers.map((from) => new Uint8Array(lengthOf(round, from, group.rank)));
          await group.allToAll(outgoing, incoming);
          for (const [from, part] of incoming.entries())
            expect(Buffer.compare(part, Buffer.alloc(part.length, 10 * from + group.rank))).toBe(0);
        });
        await Promise.all(rounds);
      }),
    );
    await Promise.all(groups.map((group) => group.close()));
  });

  it.each([
    ["waits until its receiver has what comes before", true],
    ["waits for nothing on one machine, where no switch drops it", false],
  ])("a long part %s", async (_, waits) => {
    const groups = await (waits ? apart(3) : worlds.open("tcp", 3));
    const part = 100_000;
    const parts = () => [0, 1, 2].map(() => new Uint8Array(part));
    const [zero, one, two] = groups as [Group, Group, Group];
    const firstCalls = [zero, two].map((group) => group.allToAll(parts(), parts()));
    // Rank 0 has what rank 2 sends it, and would now send to rank 2, which still waits for rank 1.
    const sent = waits ? part : 2 * part;
    while (zero.sent().bytes < sent) await sleep(1);
    await sleep(100);
    expect(zero.sent().bytes).toBe(sent);
    await Promise.all([...firstCalls, one.allToAll(parts(), parts())]);
    expect(groups.map((group) => group.sent().bytes)).toEqual([2 * part, 2 * part, 2 * part]);
    await Promise.all(groups.map((group) => group.close()));
  });
});

/** `seconds` is long where no test waits for it. */
const open = (rank: number, seconds = 300, silence = 10) =>
  collectives().tcp(rank, 2, "127.0.0.1", seconds, seconds, undefined, silence);
/** The port in a rank's address: a sockaddr_in in 128 bytes, then a secret of 16 bytes. */
const portOf = (address: Uint8Array) => Buffer.from(address).readUInt16BE(2);
/** The first message on a connection; two ranks have three, numbered 0 to 2. */
function hello(
  address: Uint8Array,
  { magic = 0x48535254, rank = 1, connection = 0, secret = address.subarray(128) } = {},
) {
  return Buffer.concat([Buffer.from(new Uint32Array([magic, rank, connection]).buffer), secret]);
}
function connectTo(port: number, bytes?: Uint8Array): { socket: Socket; ended: Promise<Buffer> } {
  const socket = connect(port, "127.0.0.1");
  const received: Buffer[] = [];
  const ended = new Promise<Buffer>((resolve) => socket.on("close", () => resolve(Buffer.concat(received))));
  socket.on("data", (data) => received.push(data)).on("error", () => {}); // a reset: the close event follows
  if (bytes) socket.write(bytes);
  return { socket, ended };
}
/** Connects rank 1, and runs an all-reduce. */
async function expectWorks(zero: ReturnType<typeof open>, waiting: Promise<void>): Promise<void> {
  const one = open(1);
  await Promise.all([waiting, one[0].connect([zero[1][1]!, new Uint8Array()])]);
  const xs = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
  await Promise.all([zero[0], one[0]].map((each, rank) => each.operate(kinds.allReduce, 0, -1, [xs[rank]!], [], 0)));
  expect(xs).toEqual([Float32Array.of(4, 6), Float32Array.of(4, 6)]);
  await Promise.all([zero[0].close(), one[0].close()]);
}
/** Rank 0 listens for rank 1, whose own address is not used. */
function listening(seconds?: number) {
  const zero = open(0, seconds);
  const address = zero[1][1]!;
  return { zero, address, waiting: zero[0].connect([new Uint8Array(), address]) };
}

describe("a connection to a port of tcp that is not a rank's", () => {
  it("is closed without an answer unless it knows the secret, and keeps no rank out", async () => {
    const { zero, address, waiting } = listening();
    const wrong = [
      Buffer.alloc(5000, "GET / HTTP/1.1\r\n"),
      hello(address, { magic: 1 }),
      hello(address, { secret: new Uint8Array(16) }),
      hello(address, { rank: 0 }),
      hello(address, { rank: 2 }),
      hello(address, { rank: 0xffffffff }),
      hello(address, { connection: 3 }),
    ];
    for (const bytes of wrong) expect(await connectTo(portOf(address), bytes).ended).toEqual(Buffer.alloc(0));
    const half = connectTo(portOf(address), hello(address).subarray(0, 27));
    const silent = connectTo(portOf(address));
    await expectWorks(zero, waiting);
    half.socket.destroy();
    silent.socket.destroy();
  });

  it("keeps no rank out when there are hundreds of them: the oldest are closed", async () => {
    const { zero, address, waiting } = listening();
    const others = Array.from({ length: 600 }, () => connectTo(portOf(address)));
    let gone = 0;
    for (const { ended } of others) void ended.then(() => gone++);
    await expect.poll(() => gone, { timeout: 500_000 }).toBe(600 - 256);
    await expectWorks(zero, waiting);
    for (const { socket } of others) socket.destroy();
  });

  it("does not extend the deadline, however many there are", async () => {
    const { zero, address, waiting } = listening(1);
    let over = false;
    const failed = waiting
      .catch((error: NativeFailure) => error)
      .finally(() => {
        over = true;
      });
    // After the deadline nothing accepts or closes a new connection.
    while (!over) await Promise.race([failed, connectTo(portOf(address), Buffer.alloc(28)).ended]);
    expect(await failed).toMatchObject({ reason: "transport", peer: 1 });
    expect(((await failed) as Error).message).toMatch(
      new RegExp(`no connection to rank 1 \\(it did not connect to 127\\.0\\.0\\.1:${portOf(address)} in time\\)$`),
    );
    await zero[0].close();
  });
});

// These tests wait for seconds, so they run at once. Each has its own `expect`, for what it asserts later.
describe.concurrent("a connection of tcp that breaks before its answer arrives", () => {
  it("can be made again, and replaces the first", async ({ expect }) => {
    const { zero, address, waiting } = listening();
    const first = connectTo(portOf(address), hello(address));
    await new Promise((resolve) => first.socket.once("data", resolve));
    first.socket.resetAndDestroy();
    const second = [0, 1, 2].map((connection) => connectTo(portOf(address), hello(address, { connection })));
    await waiting;
    const barrier = zero[0].operate(kinds.barrier, 0, -1, [], [], 0);
    const failed = expect(barrier).rejects.toThrow("the connection to rank 1 ended");
    await new Promise((resolve) => setTimeout(resolve, 50));
    second[0]!.socket.end();
    const [welcome, ...frame] = await second[0]!.ended.finally(() => failed);
    expect([welcome, ...frame.slice(0, 8)]).toEqual([1, 32, 0, 0, 0, ...Buffer.from("TRS2")]);
    await zero[0].close();
    for (const { socket } of second) socket.destroy();
  });
});

describe.concurrent("a peer of tcp that sends invalid bytes", () => {
  it.each([
    ["noise", Buffer.alloc(100_000, 0xa5), /ended \(its data does not begin like a message\)/],
    [
      "a message without a header",
      Buffer.alloc(4),
      /the message from rank 1 does not begin like a message of this version/,
    ],
    ["half a length, and the end", Buffer.alloc(2), /the connection to rank 1 ended/],
  ])("ends the group with an error that names it: %s", async (_, bytes, sentence) => {
    const { zero, address, waiting } = listening();
    const peer = [0, 1, 2].map((connection) => connectTo(portOf(address), hello(address, { connection })));
    await waiting;
    const sum = zero[0].operate(kinds.allReduce, 0, -1, [new Float32Array(10)], [], 0);
    peer[0]!.socket.end(bytes);
    const error = await sum.catch((each: NativeFailure) => each);
    expect(error).toMatchObject({ peer: 1, message: expect.stringMatching(sentence) });
    await zero[0].close();
    for (const { socket } of peer) socket.destroy();
  });

  it.each([
    ["length", Buffer.alloc(2)],
    ["header", Buffer.concat([Buffer.from(new Uint32Array([32]).buffer), Buffer.from("TRS2")])],
  ])("ends the group before its deadline when it stops in the middle of a %s", async (_, bytes) => {
    const zero = open(0, 300, 1);
    const address = zero[1][1]!;
    const waiting = zero[0].connect([new Uint8Array(), address]);
    const peer = [0, 1, 2].map((connection) => connectTo(portOf(address), hello(address, { connection })));
    await waiting;
    const sum = zero[0].operate(kinds.allReduce, 0, -1, [new Float32Array(10)], [], 0);
    peer[0]!.socket.write(bytes);
    const error = await sum.catch((each: NativeFailure) => each);
    expect(error).toMatchObject({ reason: "transport", peer: 1 });
    expect((error as Error).message).toMatch(/ended \(its data stopped in the middle of a header\)$/);
    await zero[0].close();
    for (const { socket } of peer) socket.destroy();
  });
});

describe.concurrent("a rank of tcp whose machine is lost", () => {
  // The kernel reports it on the idle connection: by a reset, as here, or by keepalive.
  it("ends the group, even if the other connections stay open", async () => {
    const { zero, address, waiting } = listening();
    const peer = [0, 1, 2].map((connection) => connectTo(portOf(address), hello(address, { connection })));
    await waiting;
    const sum = zero[0].operate(kinds.allReduce, 0, -1, [new Float32Array(10)], [], 0);
    peer[2]!.socket.resetAndDestroy();
    const error = await sum.catch((each: NativeFailure) => each);
    expect(error).toMatchObject({ reason: "transport", peer: 1 });
    expect((error as Error).message).toMatch(/rank 1 ended \(its machine no longer answers\)$/);
    await zero[0].close();
    for (const { socket } of peer) socket.destroy();
  });
});

describe.concurrent("a payload of tcp that stops", () => {
  const megabyte = 1 << 20; // a segment
  /** This test is rank 1, and has announced two segments. */
  async function receiving(silence: number) {
    const zero = open(0, 300, silence);
    const address = zero[1][1]!;
    const waiting = zero[0].connect([new Uint8Array(), address]);
    const peer = [0, 1, 2].map((connection) => connectTo(portOf(address), hello(address, { connection })));
    await waiting;
    const got = new Uint8Array(2 * megabyte);
    const received = zero[0].operate(kinds.recv, 0, 1, [got], [], 0);
    const header = Buffer.alloc(36); // its length, then the header of message.h
    header.writeUInt32LE(32);
    header.write("TRS2", 4);
    header[8] = kinds.send;
    header.writeUInt32LE(1, 12);
    header.writeBigUInt64LE(BigInt(got.length), 20);
    header.writeBigUInt64LE(BigInt(got.length), 28);
    const { socket } = peer[1]!;
    socket.write(header);
    const close = async () => {
      await zero[0].close();
      for (const each of peer) each.socket.destroy();
    };
    return { socket, received, got, [Symbol.asyncDispose]: close };
  }

  it("in the middle of a segment ends the group before the operation's timeout", async () => {
    await using world = await receiving(1);
    world.socket.write(Buffer.alloc(megabyte + 1000, 7));
    const error = await world.received.catch((each: NativeFailure) => each);
    expect(error).toMatchObject({ reason: "transport", peer: 1 });
    expect((error as Error).message).toMatch(/rank 1 ended \(its data stopped in the middle of a message\)$/);
  });

  it("between segments is no failure, and neither is a slow one", async () => {
    await using world = await receiving(1);
    world.socket.write(Buffer.alloc(megabyte, 7));
    await sleep(11_000); // longer than the 9 s after which half a segment is a failure
    for (let i = 0; i < 4; i++) {
      world.socket.write(Buffer.alloc(megabyte / 4, 8));
      await sleep(2500);
    }
    await world.received;
    expect([world.got[megabyte - 1], world.got[megabyte], world.got.at(-1)]).toEqual([7, 8, 8]);
  });
});

describe.concurrent("a rank of tcp that calls an operation late", () => {
  it("is no failure beyond the time that silence is allowed, even when the peer's buffers are full", async () => {
    const zero = open(0, 300, 1);
    const one = open(1, 300, 1);
    await Promise.all([
      zero[0].connect([new Uint8Array(), one[1][0]!]),
      one[0].connect([zero[1][1]!, new Uint8Array()]),
    ]);
    const xs = [1, 2].map((value) => new Float32Array(8 << 20).fill(value));
    const add = (each: typeof zero, rank: number) => each[0].operate(kinds.allReduce, 0, -1, [xs[rank]!], [], 0);
    const firstCall = add(zero, 0).catch((error: Error) => error);
    await sleep(6000); // silence counts from 4 s on
    await add(one, 1);
    expect(await firstCall).toBeUndefined();
    expect(xs.every((x) => x.every((each) => each === 3))).toBe(true);
    await Promise.all([zero[0].close(), one[0].close()]);
  });
});

const own = readFileSync("/proc/sys/net/ipv4/tcp_congestion_control", "utf8").trim();
const withoutPacing = (control: string) => (control.startsWith("bbr") ? "reno" : control);

describe("the congestion control of tcp", () => {
  it.for([
    ["one without pacing, between ranks of one machine", "127.0.0.1", "reno"],
    ["the machine's own, or one without pacing, to a nearby machine", "127.0.0.2", withoutPacing(own)],
  ] as const)("is %s", async ([, address, control], context) => {
    const zero = open(0);
    const one = collectives().tcp(1, 2, address, 300, 300, undefined, 10);
    const port = portOf(zero[1][1]!);
    await Promise.all([
      zero[0].connect([new Uint8Array(), one[1][0]!]),
      one[0].connect([zero[1][1]!, new Uint8Array()]),
    ]);
    const { stdout, error } = spawnSync("ss", ["-tinH", `( sport = :${port} or dport = :${port} )`], {
      encoding: "utf8",
    });
    await Promise.all([zero[0].close(), one[0].close()]);
    if (error) return context.skip("the program ss is not installed");
    const ends = stdout.split(/\n(?=\S)/).filter(Boolean);
    expect(ends.length).toBe(6); // both ends of three connections
    for (const end of ends) expect(end).toMatch(new RegExp(`\\s${control} `));
  });
});
