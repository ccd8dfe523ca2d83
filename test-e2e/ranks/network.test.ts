import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { serveRendezvous } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { describe, expect, it } from "vitest";
import { connectionsOf, type Engine, openNetwork } from "./faulty-network.ts";
import { random, seed } from "./seed.ts";
import { errorOf, type Outcome, startRanks } from "./start-ranks.ts";

/** All ranks have ended by themselves with one and the same error, which names the connection and what to do. */
function expectBroken(outcomes: readonly Outcome[], a: number, b: number): void {
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

const withoutGloo = !collectives().hasGloo;
const engines: Engine[] = withoutGloo ? ["tcp"] : ["tcp", "gloo"];

describe("a data connection that breaks while both its ranks live", () => {
  async function through(engine: Engine, size: number, mode = "busy", silenceSeconds = 10) {
    const server = await serveRendezvous({ size, token: "t", silenceSeconds });
    const network = await openNetwork(server, engine);
    const place = { TERSE_RENDEZVOUS: network.rendezvous, TERSE_ADDRESS: network.address, TERSE_ENGINE: engine };
    const env = () => ({ TERSE_TOKEN: "t", ...place });
    const run = await startRanks({ program: "run-until-failure.ts", size, args: [mode], env });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    expect(network.carried.length).toBe((connectionsOf[engine] * size * (size - 1)) / 2);
    const stop = async () => {
      await run[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
      await server.close();
    };
    return { network, run, [Symbol.asyncDispose]: stop };
  }

  // Gloo wakes nobody who waits for the transfer that was under way.
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
    `ends every rank soon, with one error that names it: %s, %s among %i ranks, in moment %i of seed ${seed}`,
    async (engine, way, size, moment) => {
      await using world = await through(engine, size);
      const connection = await world.network.moved(2e7 * random(`moment ${moment}`));
      connection[way]();
      expectBroken(await world.run.end(), ...connection.ranks);
    },
  );

  // Gloo does not report how far a transfer has come.
  it(`does so over tcp when something in between answers for it (seed ${seed})`, async () => {
    await using world = await through("tcp", 3, "busy", 5);
    const connection = await world.network.moved(2e7 * random("swallow"));
    connection.swallow();
    const outcomes = await world.run.end();
    expectBroken(outcomes, ...connection.ranks);
    expect(errorOf(outcomes[0]!)!.message).toMatch(/has stopped in the middle of a (message|header)/);
  });

  it.each(engines)("does so too when it is idle: %s", async (engine) => {
    await using world = await through(engine, 2, "idle");
    const connection = await world.network.moved(1);
    await sleep(300); // until the barrier is over
    connection.reset();
    expectBroken(await world.run.end(), 0, 1);
  });
});

describe("a network that goes silent between two ranks", () => {
  const command = (line: string) => spawnSync("ip", line.split(" "), { encoding: "utf8" });
  const ip = (line: string) => command(line).status === 0;

  /**
   * Rank 1 in a network namespace, where its link is called `data`, and both at work when the link is `cut`. The rendezvous is reached
   * by a network of its own, so that both ranks keep showing that they live.
   */
  async function ended(engine: Engine, skip: (why: string) => never, cut: (name: string) => void | Promise<void>) {
    const name = `terse-cut-${process.pid}`;
    if (!ip(`netns add ${name}`)) return skip("it takes root, and ip, to make a network namespace");
    try {
      const [data, meet] = [`tcd${process.pid}`, `tcm${process.pid}`];
      // Of the addresses that are for tests of networks, eight for this process.
      const at = (i: number) =>
        `198.${18 + ((process.pid >> 13) % 2)}.${(process.pid >> 5) & 255}.${((process.pid & 31) << 3) + i}`;
      const plan = [
        `link add ${data} type veth peer name data netns ${name}`,
        `link add ${meet} type veth peer name meet netns ${name}`,
        `addr add ${at(1)}/30 dev ${data}`,
        `addr add ${at(5)}/30 dev ${meet}`,
        `-n ${name} addr add ${at(2)}/30 dev data`,
        `-n ${name} addr add ${at(6)}/30 dev meet`,
        ...[`link set ${data} up`, `link set ${meet} up`],
        ...[`-n ${name} link set data up`, `-n ${name} link set meet up`, `-n ${name} link set lo up`],
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
      expectBroken(await run.end(), 0, 1); // 8 s of silence, and 1 s to hear who is to blame
    } finally {
      ip(`link del tcd${process.pid}`);
      ip(`link del tcm${process.pid}`);
      ip(`netns del ${name}`);
    }
  }

  it.for(engines)(
    "ends them within the time that silence is allowed, though nobody is told of its end: %s",
    (engine, context) =>
      ended(engine, context.skip, (name) => {
        expect(ip(`-n ${name} link set data down`)).toBe(true);
      }),
  );

  // Gloo waits for as long as an operation may take.
  it("does so too when it loses what one connection carries to one of them, and all else arrives", (context) =>
    ended("tcp", context.skip, async (name) => {
      // The port of the connection that has bytes to send: state 1, then its queue.
      const busy = () =>
        / [0-9A-F]{8}:([0-9A-F]{4}) [0-9A-F:]+ 01 0{0,4}[1-9A-F][0-9A-F]{3,7}:/.exec(
          command(`netns exec ${name} cat /proc/net/tcp`).stdout,
        )?.[1];
      let port: string | undefined;
      await expect.poll(() => (port = busy()), { interval: 2, timeout: 30_000 }).toBeDefined();
      // What is asked before the table of the machine's own addresses may lose what comes.
      const plan = [
        "rule add pref 10 lookup local",
        "rule del pref 0",
        `rule add pref 5 iif data ipproto tcp dport ${Number.parseInt(port!, 16)} blackhole`,
      ];
      if (!plan.every((line) => ip(`-n ${name} ${line}`))) context.skip("this kernel does not route by port");
    }));
});
