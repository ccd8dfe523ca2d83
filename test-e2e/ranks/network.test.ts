import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { connectionsPerPair, type Engine, engines, openNetwork } from "./faulty-network.ts";
import { random, seed } from "./seed.ts";
import { errorOf, type Outcome, startRanks } from "./start-ranks.ts";

/** All ranks have ended by themselves, with the same error, which names the connection and says what to do. */
function expectBrokenConnection(outcomes: readonly Outcome[], a: number, b: number): void {
  for (const outcome of outcomes) {
    expect([outcome.code, outcome.signal, outcome.stderr]).toEqual([0, null, ""]);
    expect(outcome.reports.slice(-2)).toEqual([{ same: true }, { closed: true }]);
    expect(errorOf(outcome)).toEqual(errorOf(outcomes[0]!));
  }
  const { name, reason, message } = errorOf(outcomes[0]!)!;
  expect([name, reason]).toEqual(["CollectiveError", "transport"]);
  expect(message).toMatch(
    new RegExp(
      `^(all-reduce|barrier) number \\d+ failed on rank (${a}: the connection to rank ${b}|${b}: the connection to rank ${a}) ended \\(.+\\); both ranks still answer the rendezvous, so check the network between their machines$`,
    ),
  );
}

describe("a data connection that breaks while both its ranks live", () => {
  async function startOver(engine: Engine, size: number, mode = "busy", silenceSeconds = 10) {
    const server = await serveRendezvous({ size, token: "t", silenceSeconds });
    const network = await openNetwork(server, engine);
    const place = { TERSE_RENDEZVOUS: network.rendezvous, TERSE_ADDRESS: network.address, TERSE_ENGINE: engine };
    const env = () => ({ TERSE_TOKEN: "t", ...place });
    const run = await startRanks({ program: "run-until-failure.ts", size, args: [mode], env });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    expect(network.connections.length).toBe((connectionsPerPair[engine] * size * (size - 1)) / 2);
    const stop = async () => {
      await run[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
      await server.close();
    };
    return { network, run, [Symbol.asyncDispose]: stop };
  }

  // Over gloo fewer cases: it does not wake a thread that waits for a transfer in progress.
  it.each(
    (
      [
        ["tcp", "reset", 2, 1],
        ["tcp", "reset", 3, 2],
        ["tcp", "finish", 2, 3],
        ["tcp", "finish", 3, 4],
        ["gloo", "reset", 2, 1],
        ["gloo", "finish", 3, 4],
      ] as const
    ).filter(([engine]) => engines.includes(engine)),
  )(
    `ends every rank with one error that names it: %s, %s among %i ranks, at moment %i of seed ${seed}`,
    async (engine, way, size, moment) => {
      await using world = await startOver(engine, size);
      const connection = await world.network.carried(2e7 * random(`moment ${moment}`));
      connection[way]();
      expectBrokenConnection(await world.run.end(), ...connection.ranks);
    },
  );

  // Not over gloo, which does not report the progress of a transfer.
  it(`ends every rank over tcp when a middlebox acknowledges its data and drops it (seed ${seed})`, async () => {
    await using world = await startOver("tcp", 3, "busy", 5);
    const connection = await world.network.carried(2e7 * random("swallow"));
    connection.swallow();
    const outcomes = await world.run.end();
    expectBrokenConnection(outcomes, ...connection.ranks);
    expect(errorOf(outcomes[0]!)!.message).toMatch(/stopped in the middle of a (message|header)/);
  });

  it.each(engines)("ends every rank when it breaks while no operation runs: %s", async (engine) => {
    await using world = await startOver(engine, 2, "idle");
    const connection = await world.network.carried(1);
    await sleep(300); // until the barrier is over
    connection.reset();
    expectBrokenConnection(await world.run.end(), 0, 1);
  });
});

describe("a network that goes silent between two ranks", () => {
  const command = (line: string) => spawnSync("ip", line.split(" "), { encoding: "utf8" });
  const ip = (line: string) => command(line).status === 0;

  /**
   * Runs rank 1 in a network namespace, where its link is called `data`, and calls `cut` while both ranks run operations. The rendezvous
   * has a link of its own, so that both heartbeats go on.
   */
  async function runAndCut(engine: Engine, skip: (why: string) => never, cut: (name: string) => void | Promise<void>) {
    const name = `terse-cut-${process.pid}`;
    if (!ip(`netns add ${name}`)) return skip("a network namespace needs root and ip");
    try {
      const [data, control] = [`tcd${process.pid}`, `tcc${process.pid}`];
      // Eight addresses for this process, out of those that are reserved for network tests (RFC 2544).
      const at = (i: number) =>
        `198.${18 + ((process.pid >> 13) % 2)}.${(process.pid >> 5) & 255}.${((process.pid & 31) << 3) + i}`;
      const plan = [
        `link add ${data} type veth peer name data netns ${name}`,
        `link add ${control} type veth peer name control netns ${name}`,
        `addr add ${at(1)}/30 dev ${data}`,
        `addr add ${at(5)}/30 dev ${control}`,
        `-n ${name} addr add ${at(2)}/30 dev data`,
        `-n ${name} addr add ${at(6)}/30 dev control`,
        ...[`link set ${data} up`, `link set ${control} up`],
        ...[`-n ${name} link set data up`, `-n ${name} link set control up`, `-n ${name} link set lo up`],
      ];
      if (!plan.every(ip)) return skip("this kernel has no veth");
      await using server = await serveRendezvous({ size: 2, token: "t", host: at(5) });
      await using run = await startRanks({
        program: "run-until-failure.ts",
        size: 2,
        within: (rank) => (rank === 1 ? ["ip", "netns", "exec", name] : []),
        env: (rank) => ({
          TERSE_TOKEN: "t",
          TERSE_RENDEZVOUS: `${at(5)}:${server.port}`,
          TERSE_ADDRESS: at(rank + 1),
          TERSE_ENGINE: engine,
        }),
      });
      await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
      await cut(name);
      expectBrokenConnection(await run.end(), 0, 1); // after 8 s of silence, and 1 s in which the rendezvous may name a lost rank
    } finally {
      ip(`link del tcd${process.pid}`);
      ip(`link del tcc${process.pid}`);
      ip(`netns del ${name}`);
    }
  }

  it.for(engines)("ends both ranks when a link goes down without a reset: %s", (engine, context) =>
    runAndCut(engine, context.skip, (name) => {
      expect(ip(`-n ${name} link set data down`)).toBe(true);
    }),
  );

  // Not over gloo, which waits until the operation's timeout.
  it("ends both ranks when it drops the packets of one connection in one direction", (context) =>
    runAndCut("tcp", context.skip, async (name) => {
      // The port of a connection with bytes in its send queue: state 01, then the queue's length.
      const busy = () =>
        / [0-9A-F]{8}:([0-9A-F]{4}) [0-9A-F:]+ 01 0{0,4}[1-9A-F][0-9A-F]{3,7}:/.exec(
          command(`netns exec ${name} cat /proc/net/tcp`).stdout,
        )?.[1];
      let port: string | undefined;
      await expect.poll(() => (port = busy()), { interval: 2, timeout: 300_000 }).toBeDefined();
      // A rule before the table of local addresses can drop incoming packets.
      const plan = [
        "rule add pref 10 lookup local",
        "rule del pref 0",
        `rule add pref 5 iif data ipproto tcp dport ${Number.parseInt(port!, 16)} blackhole`,
      ];
      if (!plan.every((line) => ip(`-n ${name} ${line}`))) context.skip("this kernel does not route by port");
    }));
});
