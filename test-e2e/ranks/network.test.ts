import { spawnSync } from "node:child_process";
import { serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { openNetwork } from "./network.ts";
import { random, seed } from "./seed.ts";
import { errorOf, type Outcome, startRanks } from "./start-ranks.ts";

/** All ranks have ended by themselves with one and the same error, which names the connection and what to do. */
function expectBroken(outcomes: readonly Outcome[], a: number, b: number): void {
  for (const outcome of outcomes) {
    expect([outcome.code, outcome.signal, outcome.stderr]).toEqual([0, null, ""]);
    expect(outcome.told.slice(-2)).toEqual([{ same: true }, { closed: true }]);
    expect(errorOf(outcome)).toEqual(errorOf(outcomes[0]!));
  }
  const { name, reason, message } = errorOf(outcomes[0]!)!;
  expect([name, reason]).toEqual(["CollectiveError", "transport"]);
  expect(message).toMatch(
    new RegExp(
      `^(all-reduce|barrier) number \\d+ failed on rank (${a}: the connection to rank ${b}|${b}: the connection to rank ${a}) ended \\(.+\\); both ranks still answer the rendezvous, so see to the network between their machines$`,
    ),
  );
}

describe("a data connection that breaks while both its ranks live", () => {
  // Gloo wakes nobody who waits for the transfer that was under way.
  it.each([
    ["reset", 2, 1],
    ["reset", 3, 2],
    ["finish", 2, 3],
    ["finish", 3, 4],
  ] as const)(
    `ends every rank within 10 s, with one error that names it: %s among %i ranks, in moment %i of seed ${seed}`,
    async (way, size, moment) => {
      await using server = await serveRendezvous({ size, token: "t" });
      await using network = await openNetwork(server);
      await using run = await startRanks({
        program: "until-lost.ts",
        size,
        env: () => ({ TERSE_TOKEN: "t", TERSE_RENDEZVOUS: network.rendezvous, TERSE_ADDRESS: network.address }),
      });
      await Promise.all(run.ranks.map((rank) => rank.told("ready")));
      expect(network.carried.length).toBe((size * (size - 1)) / 2);
      const connection = await network.moved(2e7 * random(`moment ${moment}`));
      connection[way]();
      expectBroken(await run.end(10), ...connection.ranks);
    },
  );

  it("does so too when it is idle", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    await using network = await openNetwork(server);
    await using run = await startRanks({
      program: "until-lost.ts",
      size: 2,
      args: ["idle"],
      env: () => ({ TERSE_TOKEN: "t", TERSE_RENDEZVOUS: network.rendezvous, TERSE_ADDRESS: network.address }),
    });
    await Promise.all(run.ranks.map((rank) => rank.told("ready")));
    network.carried[0]!.reset();
    expectBroken(await run.end(10), 0, 1);
  });
});

describe("a network that goes silent between two ranks", () => {
  const ip = (line: string) => spawnSync("ip", line.split(" ")).status === 0;

  // The rendezvous is reached by a network of its own, so that both ranks keep showing that they live.
  it("ends them within the time that silence is allowed, though nobody is told of its end", async (context) => {
    const name = `terse-cut-${process.pid}`;
    if (!ip(`netns add ${name}`)) return context.skip("it takes root, and ip, to make a network namespace");
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
      if (!plan.every(ip)) return context.skip("this kernel has no veth");
      await using server = await serveRendezvous({ size: 2, token: "t", host: at(5) });
      await using run = await startRanks({
        program: "until-lost.ts",
        size: 2,
        within: (rank) => (rank === 1 ? ["ip", "netns", "exec", name] : []),
        env: (rank) => ({
          TERSE_TOKEN: "t",
          TERSE_RENDEZVOUS: `${at(5)}:${server.port}`,
          TERSE_ADDRESS: at(rank + 1),
        }),
      });
      await Promise.all(run.ranks.map((rank) => rank.told("ready")));
      expect(ip(`-n ${name} link set data down`)).toBe(true);
      expectBroken(await run.end(11), 0, 1); // 8 s of silence, 1 s to hear who is to blame, and a slow machine
    } finally {
      ip(`link del tcd${process.pid}`);
      ip(`link del tcm${process.pid}`);
      ip(`netns del ${name}`);
    }
  });
});
