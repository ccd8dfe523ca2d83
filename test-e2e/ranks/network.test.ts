import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { connectionsPerPair, type Engine, engines, openNetwork } from "./faulty-network.ts";
import { type NamespaceLink, type NetworkNamespace, openNamespace } from "./network-namespace.ts";
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
  async function startOver(engine: Engine, size: number, mode = "busy", outageSeconds = 8) {
    const server = await serveRendezvous({ size, token: "t", outageSeconds });
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
      const connection = await world.network.afterBytes(2e7 * random(`moment ${moment}`));
      connection[way]();
      expectBrokenConnection(await world.run.end(), ...connection.ranks);
    },
  );

  // Not over gloo, which does not report the progress of a transfer.
  it.concurrent(`ends every rank over tcp when a middlebox acknowledges its data and drops it (seed ${seed})`, async () => {
    await using world = await startOver("tcp", 3, "busy", 3);
    const connection = await world.network.afterBytes(2e7 * random("swallow"));
    connection.swallow();
    const outcomes = await world.run.end();
    expectBrokenConnection(outcomes, ...connection.ranks);
    expect(errorOf(outcomes[0]!)!.message).toMatch(/stopped in the middle of a (message|header)/);
  });

  it.concurrent.each(engines)("ends every rank when it breaks while no operation runs: %s", async (engine) => {
    await using world = await startOver(engine, 2, "idle");
    const connection = await world.network.afterBytes(1);
    await sleep(300); // until the barrier is over
    connection.reset();
    expectBrokenConnection(await world.run.end(), 0, 1);
  });
});

describe("a network that goes silent between two ranks", () => {
  /**
   * Runs rank 1 in a network namespace, and calls `cut` while both ranks run operations. The rendezvous has a link of
   * its own, so that both heartbeats go on.
   */
  async function runAndCut(
    engine: Engine,
    skip: (why: string) => never,
    cut: (namespace: NetworkNamespace) => void | Promise<void>,
  ) {
    using namespace = openNamespace(2, skip);
    const [data, control] = namespace.links as [NamespaceLink, NamespaceLink];
    await using server = await serveRendezvous({ size: 2, token: "t", host: control.here });
    await using run = await startRanks({
      program: "run-until-failure.ts",
      size: 2,
      within: (rank) => (rank === 1 ? namespace.within : []),
      env: (rank) => ({
        TERSE_TOKEN: "t",
        TERSE_RENDEZVOUS: `${control.here}:${server.port}`,
        TERSE_ADDRESS: rank === 0 ? data.here : data.there,
        TERSE_ENGINE: engine,
      }),
    });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    await cut(namespace);
    expectBrokenConnection(await run.end(), 0, 1);
  }

  it.for(engines)("ends both ranks when a link goes down without a reset: %s", (engine, context) =>
    runAndCut(engine, context.skip, ({ links }) => links[0]!.takeDown()),
  );

  // Not over gloo, which waits until the operation's timeout.
  it("ends both ranks when it drops the packets of one connection in one direction", (context) =>
    runAndCut("tcp", context.skip, async ({ within, ip }) => {
      // The port of a connection with bytes in its send queue: state 01, then the queue's length.
      const [command, ...words] = [...within, "cat", "/proc/net/tcp"];
      const busy = () =>
        / [0-9A-F]{8}:([0-9A-F]{4}) [0-9A-F:]+ 01 0{0,4}[1-9A-F][0-9A-F]{3,7}:/.exec(
          spawnSync(command!, words, { encoding: "utf8" }).stdout,
        )?.[1];
      let port: string | undefined;
      await expect.poll(() => (port = busy()), { interval: 2, timeout: 300_000 }).toBeDefined();
      // A rule before the table of local addresses can drop incoming packets.
      const plan = [
        "rule add pref 10 lookup local",
        "rule del pref 0",
        `rule add pref 5 iif link0 ipproto tcp dport ${Number.parseInt(port!, 16)} blackhole`,
      ];
      if (!plan.every(ip)) context.skip("this kernel does not route by port");
    }));
});
