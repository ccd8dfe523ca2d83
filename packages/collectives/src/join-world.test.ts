import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { collectives } from "@terse/native-collectives";
import { describe, expect, it } from "vitest";
import { engineNames, engines } from "./engines/engines.ts";
import { loopback } from "./engines/loopback.ts";
import { CollectiveError, RendezvousError } from "./errors.ts";
import { joinWorld } from "./join-world.ts";
import { serveRendezvous } from "./rendezvous/server.ts";

function readable(text: string): string {
  const [address, port] = text.split(":") as [string, string];
  return `${Buffer.from(address, "hex").reverse().join(".")}:${Number.parseInt(port, 16)}`;
}

/** `local address:port → remote address:port` of this process's IPv4 sockets. */
function socketsOfThisProcess(): string[] {
  const mine = new Set<string>();
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      mine.add(readlinkSync(`/proc/self/fd/${fd}`));
    } catch {
      // Closed since it was listed.
    }
  }
  return readFileSync("/proc/self/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => mine.has(`socket:[${words[9]}]`))
    .map((words) => `${readable(words[1]!)} → ${readable(words[2]!)}`);
}

describe("joining a world", () => {
  it("of one rank needs no environment", async () => {
    await using group = await joinWorld({ env: {} });
    const x = Float32Array.of(3);
    await group.allReduce(x);
    expect([group.rank, group.size, x[0]]).toEqual([0, 1, 3]);
  });

  it("of several ranks needs a rendezvous", async () => {
    await expect(joinWorld({ env: { RANK: "0", WORLD_SIZE: "2" } })).rejects.toThrow(
      "a world of 2 ranks needs a rendezvous: set MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, or start it with the launcher",
    );
    const mpirun = { PMI_RANK: "0", PMI_SIZE: "2", MPI_LOCALRANKID: "0", MPI_LOCALNRANKS: "1" };
    await expect(joinWorld({ env: mpirun })).rejects.toThrow(
      "a world of 2 ranks needs a rendezvous: set MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, or start it with the launcher; mpirun passes them on with -genvlist MASTER_ADDR,MASTER_PORT",
    );
    await expect(joinWorld({ env: {}, engin: "gloo" } as never)).rejects.toThrow(
      "joinWorld: there is no option engin (known: engine, nccl, env",
    );
    await expect(serveRendezvous({ size: 2, host: "0.0.0.0" } as never)).rejects.toThrow(
      "serveRendezvous: token must be a string",
    );
    expect(() => loopback(2, { timeout: 5 } as never)).toThrow("loopback: there is no option timeout (known");
    await expect(joinWorld({ env: {}, engine: "smoke signals" as "gloo" })).rejects.toThrow(
      "no engine is called smoke signals; there are tcp, gloo, mpi and nccl",
    );
    for (const option of ["deadlineSeconds", "timeoutSeconds"])
      await expect(joinWorld({ env: {}, [option]: -1 })).rejects.toThrow(`${option} must be more than 0, and is -1`);
  });

  it("refuses text where a number is needed, as variables of the environment have it, and shows it as text", async () => {
    expect(() => loopback("2" as never)).toThrow('loopback: the size must be a whole number from 1 on, and is "2"');
    const seconds = 'must be more than 0, and is "5"';
    expect(() => loopback(2, { timeoutSeconds: "5" as never })).toThrow(`timeoutSeconds ${seconds}`);
    for (const option of ["deadlineSeconds", "timeoutSeconds"])
      await expect(joinWorld({ env: {}, [option]: "5" })).rejects.toThrow(`${option} ${seconds}`);
    const serve = (options: object) => expect(serveRendezvous({ size: 2, token: "", ...options } as never)).rejects;
    await serve({ size: "2" }).toThrow('the size must be 1 or more, and is "2"');
    await serve({ deadlineSeconds: "5" }).toThrow(`deadlineSeconds ${seconds}`);
    await serve({ deadlineSeconds: 0 }).toThrow("deadlineSeconds must be more than 0, and is 0");
    await serve({ outageSeconds: "5" }).toThrow('outageSeconds must be from 0.1 to 3600 seconds, and is "5"');
    const [group] = loopback(2);
    const x = new Float32Array(1);
    await expect(group!.broadcast(x, "0" as never)).rejects.toThrow(
      'there is no rank "0" among 2; give one from 0 to 1',
    );
    await expect(group!.send(x, 1n as never)).rejects.toThrow("there is no rank 1n among 2");
    await expect(group!.split("1" as never)).rejects.toThrow('the color must be an integer or undefined, and is "1"');
    await expect(group!.split(1, "1" as never)).rejects.toThrow('the key must be a number, and is "1"');
    const note = { note: "1" as never };
    await expect(group!.allToAll([x, x], [x.slice(), x.slice()], note)).rejects.toThrow('from 0 to 127, and is "1"');
  });
});

describe("joining a world of two ranks", () => {
  const env = (server: { host: string; port: number }, rank: number, size = 2) => ({
    RANK: `${rank}`,
    WORLD_SIZE: `${size}`,
    TERSE_TOKEN: "t",
    TERSE_RENDEZVOUS: server.host.includes(":") ? `[${server.host}]:${server.port}` : `${server.host}:${server.port}`,
  });

  it("works over IPv6 too", async (context) => {
    const server = await serveRendezvous({ size: 2, token: "t", host: "::1" }).catch(() => undefined);
    if (!server) return context.skip("this machine has no IPv6");
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const xs = groups.map(() => new Float32Array(100_000).fill(1));
    await Promise.all(groups.map((group, rank) => group.allReduce(xs[rank]!)));
    expect(xs.every((x) => x.every((each) => each === 2))).toBe(true);
    await Promise.all(groups.map((group) => group.close()));
    await server.close();
  });

  it.each([
    ["lo", "127.0.0.1"],
    ["127.0.0.2", "127.0.0.2"],
    ["localhost", "127.0.0.1"],
  ])("connects ranks at the address of TERSE_ADDRESS: %s", async (wanted, want) => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const before = new Set(socketsOfThisProcess());
    const groups = await Promise.all(
      [0, 1].map((rank) => joinWorld({ env: { ...env(server, rank), TERSE_ADDRESS: wanted } })),
    );
    const xs = groups.map(() => new Float32Array(100_000).fill(1));
    await Promise.all(groups.map((group, rank) => group.allReduce(xs[rank]!)));
    expect(xs.every((x) => x.every((each) => each === 2))).toBe(true);
    const port = `:${server.port}`;
    const own = socketsOfThisProcess().filter((each) => !before.has(each) && !each.includes(port));
    expect(own.length).toBeGreaterThan(0);
    for (const socket of own) expect(socket).toContain(`${want}:`);
    await Promise.all(groups.map((group) => group.close()));
  });

  const emulating = engineNames.filter((name) => engines[name].emulatesLinks && engines[name].missing() === undefined);
  it.each(emulating)("slows its connections down to an emulated link, in all its groups: %s", async (engine) => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const groups = await Promise.all(
      [0, 1].map((rank) =>
        joinWorld({
          engine,
          env: { ...env(server, rank), TERSE_EMULATE_LINK: "10mbit,2ms" },
          // An option precedes the variable.
          ...(rank === 1 ? { emulateLink: { bitsPerSecond: 50e6, latency: 0.02 } } : {}),
        }),
      ),
    );
    const inner = await Promise.all(groups.map((group) => group.split(0)));
    expect(inner.map((group) => group!.emulatedLink)).toEqual([
      { bitsPerSecond: 10e6, latency: 0.002 },
      { bitsPerSecond: 50e6, latency: 0.02 },
    ]);
    for (const [from, bitsPerSecond, latency] of [
      [0, 10e6, 0.002],
      [1, 50e6, 0.02],
    ] as const) {
      await Promise.all(inner.map((group) => group!.barrier()));
      const [begin, bytes] = [performance.now(), 100_000];
      await Promise.all([
        inner[from]!.send(new Uint8Array(bytes), 1 - from),
        inner[1 - from]!.recv(new Uint8Array(bytes), from),
      ]);
      const seconds = (performance.now() - begin) / 1000;
      expect(seconds).toBeGreaterThanOrEqual((8 * (bytes + 32)) / bitsPerSecond + latency);
    }
    await Promise.all([...inner, ...groups].map((group) => group!.close()));
    await expect(joinWorld({ env: env(server, 0), emulateLink: "fast" })).rejects.toThrow("a link is written like");
  });

  it("fails on all ranks where an address is not this machine's", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const outcomes = await Promise.allSettled([
      joinWorld({ env: env(server, 0) }),
      joinWorld({ env: env(server, 1), address: "192.0.2.1" }),
    ]);
    const [zero, one] = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason);
    for (const error of [zero, one]) expect(error).toBeInstanceOf(RendezvousError);
    expect(one.message).toMatch(/^this rank cannot listen on 192\.0\.2\.1/);
    expect(zero.message).toMatch(/^rank 1 could not join: this rank cannot listen/);
  });

  it("refuses ranks whose addresses are of different families", async (context) => {
    const ipv6 = await serveRendezvous({ size: 1, token: "t", host: "::1" }).catch(() => undefined);
    if (!ipv6) return context.skip("this machine has no IPv6");
    await ipv6.close();
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const outcomes = await Promise.allSettled([
      joinWorld({ env: env(server, 0) }),
      joinWorld({ env: env(server, 1), address: "::1" }),
    ]);
    for (const outcome of outcomes) {
      const { reason } = outcome as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(RendezvousError);
      expect(reason.message).toMatch(/offers the address .+ cannot reach; give rank \d another one in TERSE_ADDRESS/);
    }
  });

  it("fails an operation that the other rank does not call in time", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank), timeoutSeconds: 2 })));
    const error = await groups[0]!.allReduce(new Float32Array(100_000)).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(CollectiveError);
    expect((error as CollectiveError).reason).toBe("timeout");
    expect((error as Error).message).toBe(
      "all-reduce number 1 failed on rank 0: rank 1 did not take part in time; check what it is doing, or raise timeoutSeconds",
    );
    await expect(groups[1]!.barrier()).rejects.toThrow(
      "all-reduce number 1 failed on rank 0: rank 1 did not take part in time; check what it is doing, or raise timeoutSeconds",
    );
    await Promise.all(groups.map((group) => group.close()));
  });

  it("fails a split that a rank does not call in time, on all ranks", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t", deadlineSeconds: 10 });
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const error = await groups[0]!.split(0).catch((each: unknown) => each);
    const other = await groups[1]!.barrier().catch((each: unknown) => each);
    for (const each of [error, other]) {
      expect(each).toBeInstanceOf(CollectiveError);
      expect([(each as CollectiveError).reason, (each as Error).message]).toEqual([
        "timeout",
        "rank 1 did not reach world/split-0 within 10 s; check what it does, or raise deadlineSeconds",
      ]);
    }
    await Promise.all(groups.map((group) => group.close()));
  });

  it("goes on when a group split from the world fails", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const inner = await Promise.all(groups.map((group) => group.split(0)));
    inner[0]!.abort("no more of this");
    await expect(inner[1]!.barrier()).rejects.toThrow(
      /^rank 0 \(in a group of the world's ranks 0, 1\) aborted the group: no more of this$/,
    );
    await Promise.all(groups.map((group) => group.barrier()));
    await Promise.all([...inner, ...groups].map((group) => group!.close()));
  });

  it("leaves no port open when the ranks are connected", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const before = new Set(socketsOfThisProcess());
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const after = socketsOfThisProcess().filter((each) => !before.has(each));
    expect(after.filter((each) => each.endsWith("→ 0.0.0.0:0"))).toEqual([]);
    expect(after.length).toBeGreaterThan(6); // the connections between them and to the rendezvous
    await Promise.all(groups.map((group) => group.close()));
  });

  // Gloo accepts any connection as the rank that it waits for.
  const noGloo = !collectives().hasGloo;
  it.skipIf(noGloo)(
    "opens no port for gloo before all ranks have joined (skipped where the build has no Gloo)",
    async () => {
      await using server = await serveRendezvous({ size: 2, token: "t" });
      const before = new Set(socketsOfThisProcess());
      const listening = () =>
        socketsOfThisProcess().filter((each) => !before.has(each) && each.endsWith("→ 0.0.0.0:0"));
      const first = joinWorld({ engine: "gloo", env: env(server, 0) });
      // It waits, and sends heartbeats.
      await expect.poll(() => socketsOfThisProcess().length, { timeout: 500_000 }).toBeGreaterThan(before.size + 3);
      expect(listening()).toEqual([]);
      const groups = await Promise.all([first, joinWorld({ engine: "gloo", env: env(server, 1) })]);
      expect(listening()).toEqual([]);
      await Promise.all(groups.map((group) => group.close()));
    },
  );

  it("enables TCP keepalive on its connections", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const before = new Set(socketsOfThisProcess());
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const data = socketsOfThisProcess().filter((each) => !before.has(each) && !each.includes(`:${server.port}`));
    expect(data.length).toBe(6); // both ends of three connections
    const timers = () =>
      readFileSync("/proc/self/net/tcp", "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, remote]) => data.includes(`${readable(local ?? ":")} → ${readable(remote ?? ":")}`))
        .map((words) => words[5]!.slice(0, 2));
    await expect.poll(timers, { timeout: 500_000 }).toEqual(Array(6).fill("02")); // 01 is a retransmission
    await Promise.all(groups.map((group) => group.close()));
  });

  it("adds one listener to the process for all its worlds, and removes it with the last", async () => {
    const before = process.listenerCount("beforeExit");
    const worlds = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const server = await serveRendezvous({ size: 2, token: "t" });
        const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
        return { server, groups };
      }),
    );
    expect(process.listenerCount("beforeExit")).toBe(before + 1); // Node warns of a leak from the eleventh on
    for (const { server, groups } of worlds) {
      await Promise.all(groups.map((group) => group.close()));
      await server.close();
    }
    expect(process.listenerCount("beforeExit")).toBe(before);
  });

  it("loses a rank whose worker thread is terminated in the middle of an operation", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const code = `
      import(${JSON.stringify(new URL("./index.ts", import.meta.url).href)}).then(async ({ joinWorld }) => {
        const { parentPort, workerData } = require("node:worker_threads");
        globalThis.group = await joinWorld({ env: workerData });
        group.allReduce(new Float32Array(1 << 20)).catch(() => {});
        group.recv(new Float32Array(1 << 20), 0).catch(() => {});
        parentPort.postMessage("pending");
      });`;
    const options = { eval: true, workerData: env(server, 1), execArgv: ["--conditions=@terse/source"] };
    const worker = new Worker(code, options);
    const group = await joinWorld({ env: env(server, 0) });
    expect(await once(worker, "message")).toEqual(["pending"]);
    const receive = group.recv(new Float32Array(3), 1);
    const lost = expect(receive).rejects.toMatchObject({ name: "RankLostError", rank: 1 });
    await worker.terminate();
    await lost;
    await group.close();
  });

  it("closes the groups split from it when it is closed", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const groups = await Promise.all([0, 1].map((rank) => joinWorld({ env: env(server, rank) })));
    const inner = await Promise.all(groups.map((group) => group.split(0)));
    await Promise.all(groups.map((group) => group.close()));
    await expect(inner[0]!.barrier()).rejects.toThrow("the world that this group belongs to was closed");
    await server.finished;
  });
});
