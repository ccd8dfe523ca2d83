/** Peers with the token send what no rank sends. The receiver goes on, or ends with an error that names the peer. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { RendezvousError } from "../errors.ts";
import type { Group } from "../group.ts";
import { joinWorld } from "../join-world.ts";
import type { NativeGroup } from "../native-group.ts";
import { RendezvousClient } from "./client.ts";
import { type GroupFailure, protocolVersion } from "./protocol.ts";
import { serveRendezvous } from "./server.ts";
import type { RendezvousServer } from "./server-options.ts";

const seed = Number(process.env["TERSE_TEST_SEED"] ?? Date.now() % 1_000_000);
const token = "t";

/** mulberry32, from 0 to 1. */
function numbersOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const strange: readonly unknown[] = [
  ...[undefined, null, true, -1, 0, 1, 7, 1.5, 2 ** 31, 2 ** 53, 1e308, Number.NaN, ""],
  ...["x".repeat(20_000), "\u001b[2Jgone\u0007", "\u202eevil", "\ud800", "__proto__", "world", "0"],
  ...[[], [[]], [0, 1, 2], [null], {}, { toString: 1 }, { length: 5 }, nested(40), nested(500)],
];

/** The value with one to three places in it replaced. */
function mutate(value: unknown, random: () => number): unknown {
  const copy = structuredClone(value);
  for (let i = 0; i <= 2 * random(); i++) {
    let place = copy as Record<string, unknown>;
    for (;;) {
      const keys = Object.keys(place);
      const key = keys[Math.floor(random() * keys.length)];
      if (key === undefined) break;
      const inner = place[key];
      if (typeof inner === "object" && inner !== null && random() < 0.6) {
        place = inner as Record<string, unknown>;
        continue;
      }
      place[key] = structuredClone(pick(strange, random));
      break;
    }
  }
  return copy;
}

const pick = <T>(from: readonly T[], random: () => number): T => from[Math.floor(random() * from.length)]!;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
const rounds = Array.from({ length: 40 }, (_, round) => round);

describe(`a peer with the token that sends anything, of seed ${seed}`, () => {
  const requests = [
    { id: 1, do: "set", key: "k", value: [1, { a: 2 }] },
    { id: 2, do: "get", key: "k" },
    { id: 3, do: "allGather", key: "g", members: [0, 1], value: { blob: "AAAA" } },
    { id: 4, do: "allToAll", key: "a", members: [0, 1], values: [1, 2] },
    { id: 5, do: "leave", group: "world", members: [0, 1], value: { collectives: 1 } },
    { do: "abort", group: "world/split-0/1", reason: "aborted", message: "why" },
    { do: "bye" },
  ];
  const hello = { terse: protocolVersion, token, epoch: "0", rank: 1, size: 2, config: "", pid: 7, host: "there" };

  it.each(rounds)("is refused or named by the server, which goes on: round %i", async (round) => {
    const random = numbersOf(seed + round);
    await using server = await serveRendezvous({ size: 2, token });
    const failures: GroupFailure[] = [];
    const place = { host: server.host, port: server.port, token, rank: 0, size: 2 };
    const honest = await RendezvousClient.connect(place, (failure) => failures.push(failure));
    const socket = connect(server.port, server.host);
    socket.on("error", () => {}); // the close event follows
    let answer = "";
    socket.setEncoding("utf8").on("data", (data: string) => {
      answer += data;
    });
    const first = random() < 0.3 ? mutate(hello, random) : hello;
    socket.write(`${JSON.stringify(first)}\n`);
    for (let i = 0; i < 20 && !socket.destroyed; i++) {
      const line = random() < 0.5 ? pick(requests, random) : mutate(pick(requests, random), random);
      socket.write(`${JSON.stringify(line)}\n`);
    }
    socket.end();
    await once(socket, "close");
    expect(unprintable.test(answer)).toBe(false); // in JSON such characters are escaped
    // The server has read everything. It still serves, or it has told why it cannot.
    const ended = await Promise.race([honest.set("after", round).then(() => "served"), server.failure]);
    if (ended !== "served") {
      const { kind, message } = ended as GroupFailure;
      if (kind !== "abort") expect(message).toMatch(/^rank \d+ /); // as the peer calls itself; an abort has its own words
      expect(unprintable.test(failures[0]?.message ?? "")).toBe(false);
      expect((failures[0]?.message ?? "").length).toBeLessThan(10_000);
    }
    await honest.close();
  });

  const answers = [
    { id: 1, value: [null, null] },
    { id: 1, error: "no rank has set it", missing: [1] },
    { left: "world", rank: 1, value: { collectives: 0 } },
    { failure: { kind: "lost", rank: 1, message: "rank 1 is lost" } },
    { failure: { kind: "missing", ranks: [1], message: "rank 1 did not connect" } },
    { failure: { kind: "abort", group: "world", reason: "aborted", message: "rank 1 stopped" } },
  ];
  const welcome = { welcome: true, holder: 1, outageSeconds: 8, deadlineSeconds: 60 };

  it.each(rounds)("as the server ends a rank with an error, or is understood: round %i", async (round) => {
    const random = numbersOf(seed + 1000 + round);
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on("error", () => {}));
      const first = random() < 0.3 ? mutate(welcome, random) : welcome;
      socket.once("data", () => socket.write(`${JSON.stringify(first)}\n`));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const place = { host: "127.0.0.1", port: (server.address() as AddressInfo).port, token, rank: 0, size: 2 };
    const failures: GroupFailure[] = [];
    const outcome = await RendezvousClient.connect({ ...place, deadlineSeconds: 20 }, (failure) =>
      failures.push(failure),
    ).catch((error: unknown) => error);
    if (outcome instanceof RendezvousClient) {
      outcome.onLeave("world", () => {});
      const asked = outcome.allGather("world/joined", [0, 1], null).catch((error: unknown) => error);
      for (let i = 0; i < 10; i++) sockets[0]!.write(`${JSON.stringify(mutate(pick(answers, random), random))}\n`);
      sockets[0]!.end();
      const answer = await asked;
      if (answer instanceof Error) expect(answer).toBeInstanceOf(RendezvousError);
      for (const { message } of failures)
        expect([typeof message, unprintable.test(message)]).toEqual(["string", false]);
      await outcome.close();
    } else {
      expect(outcome).toBeInstanceOf(RendezvousError);
      expect((outcome as Error).message).toMatch(
        /^what listens at 127\.0\.0\.1:\d+ is (no rendezvous of this version|not a terse rendezvous)/,
      );
    }
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});

describe("a rank that lies to the others", () => {
  const env = ({ host, port }: RendezvousServer, rank: number) => ({
    RANK: `${rank}`,
    WORLD_SIZE: "2",
    TERSE_RENDEZVOUS: `${host}:${port}`,
    TERSE_TOKEN: token,
  });
  const contact = { blob: Buffer.alloc(144).toString("base64"), address: "127.0.0.1", host: "there" };

  it.each([
    ["nothing", null],
    ["a text", "x"],
    ["no address", { blob: contact.blob, host: "there" }],
    ["a name as its address", { ...contact, address: "there" }],
    ["a number as its host", { ...contact, host: 7 }],
    ["a short address", { ...contact, blob: "AAAA" }],
    ["a long address", { ...contact, blob: Buffer.alloc(700).toString("base64") }],
    ["no base64", { ...contact, blob: "\u001b[2J" }],
  ])("about its address is named: %s", async (_, lie) => {
    await using server = await serveRendezvous({ size: 2, token });
    const config = createHash("sha256")
      .update(JSON.stringify([protocolVersion, "tcp", ""]))
      .digest("hex");
    const place = { host: server.host, port: server.port, token, rank: 1, size: 2, config };
    const joining = joinWorld({ env: env(server, 0), engine: "tcp" });
    const liar = await RendezvousClient.connect(place, () => {});
    liar.allToAll("world/addresses", [0, 1], [lie, lie]).catch(() => {});
    await expect(joining).rejects.toThrow(/^rank 1 sent invalid data as its address: /);
    await liar.close();
  });

  async function joined(use: (groups: readonly Group[], lie: NativeGroup["world"]["rendezvous"]) => Promise<void>) {
    await using server = await serveRendezvous({ size: 2, token });
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank), engine: "tcp" })));
    await use(groups, (groups[1] as NativeGroup).world.rendezvous);
    for (const group of groups) group.abort("the test is over");
    await Promise.all(groups.map((group) => group.close()));
  }

  it.each([null, [], { color: "red", key: 0 }, { color: 1 }, { color: 1, key: "x" }])(
    "about its color is named: %j",
    (lie) =>
      joined(async ([group], rendezvous) => {
        rendezvous.allGather("world/split-0", [0, 1], lie).catch(() => {});
        await expect(group!.split(0)).rejects.toThrow(/^rank 1 sent invalid data as its color: /);
      }),
  );

  it.each([
    null,
    {},
    { collectives: -1, splits: 0, sends: [0, 0], recvs: [0, 0] },
    { collectives: 0, splits: 0, sends: [0], recvs: [0, 0] },
    { collectives: 0, splits: 0, sends: { 0: 1, length: 2 }, recvs: [0, 0] },
  ])("about its calls when it closes is named: %j", (lie) =>
    joined(async ([group], rendezvous) => {
      void rendezvous.leave("world", [0, 1], lie);
      await sleep(50);
      await expect(group!.barrier()).rejects.toThrow(/^rank 1 sent invalid data when it closed the group: /);
    }),
  );

  it("with an error text that moves the cursor changes nothing on another rank's terminal", () =>
    joined(async ([group, liar]) => {
      const waiting = expect(group!.barrier()).rejects.toThrow(/^rank 1 .*: ·\[2J.* … \(\d+ characters more\)/s);
      liar!.abort(`\u001b[2J${"x".repeat(1e6)}`);
      await waiting;
    }));
});
