import { setTimeout as sleep } from "node:timers/promises";
import { answerHeartbeats, serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Engine, engines } from "./faulty-network.ts";
import { type NamespaceLink, openNamespace } from "./network-namespace.ts";
import { errorOf, startRanks } from "./start-ranks.ts";

type Skip = (why: string) => never;

interface World {
  readonly engine: Engine;
  readonly program: string;
  readonly args?: readonly string[];
  readonly outageSeconds?: number;
  /** The rendezvous has a link of its own, the second one. */
  readonly apart?: boolean;
}

/** Rank 1 in a network namespace, and rank 0 and the rendezvous on this machine. */
async function openWorld({ engine, program, args = [], outageSeconds, apart = false }: World, skip: Skip) {
  const namespace = openNamespace(apart ? 2 : 1, skip);
  const [data, control = data] = namespace.links as [NamespaceLink, NamespaceLink?];
  const limit = outageSeconds === undefined ? {} : { outageSeconds };
  const place = { size: 2, token: "t", host: control.here };
  const server = await serveRendezvous({ ...place, ...limit, answers: answerHeartbeats });
  const start = () =>
    startRanks({
      program,
      size: 2,
      args,
      within: (rank) => (rank === 1 ? namespace.within : []),
      env: (rank) => ({
        TERSE_TOKEN: "t",
        TERSE_RENDEZVOUS: `${control.here}:${server.port}`,
        TERSE_ADDRESS: rank === 0 ? data.here : data.there,
        TERSE_ENGINE: engine,
      }),
    });
  const close = async () => {
    await server.close();
    namespace[Symbol.dispose]();
  };
  return { namespace, data, start, [Symbol.asyncDispose]: close };
}

/** What comes from this machine is lost, and what goes there is not. */
function deafen({ ip }: { ip(line: string): boolean }): void {
  // A rule before the table of local addresses can drop incoming packets.
  for (const line of ["rule add pref 10 lookup local", "rule del pref 0", "rule add pref 5 iif link0 blackhole"])
    expect(ip(line), line).toBe(true);
}
const undeafen = ({ ip }: { ip(line: string): boolean }) => expect(ip("rule del pref 5")).toBe(true);

interface Case {
  readonly engine: Engine;
  readonly mode: "busy" | "idle";
  readonly way: "both ways" | "one way";
  readonly seconds: number;
}

/** What two ranks report whose link is down for a while, and how long it was. */
async function throughOutage({ engine, mode, way, seconds }: Case, skip: Skip) {
  await using world = await openWorld({ engine, program: "run-for.ts", args: [mode, `${seconds + 4}`] }, skip);
  await using run = await world.start();
  await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
  await sleep(2000 * Math.random());
  const began = performance.now();
  if (way === "both ways") world.data.takeDown();
  else deafen(world.namespace);
  await sleep(1000 * seconds);
  if (way === "both ways") world.data.bringUp();
  else undeafen(world.namespace);
  const took = (performance.now() - began) / 1000;
  const outcomes = (await run.end()).map(({ reports, stderr }) => ({ reports, stderr }));
  return { outcomes, seconds: took };
}

describe("a link that is down for less than it may be, 8 s", () => {
  const cases = engines.flatMap((engine) =>
    (["busy", "idle"] as const).flatMap((mode) =>
      (["both ways", "one way"] as const).flatMap((way): Case[] =>
        [3, 5, 7].map((seconds) => ({ engine, mode, way, seconds })),
      ),
    ),
  );
  // Together, because they wait. Several at different moments of the heartbeats and of the kernel's probes.
  it.concurrent.for(cases)(
    "costs time, and nothing else: $engine, $mode, $way, for $seconds s",
    async (each, context) => {
      let run = await throughOutage(each, context.skip);
      // Where the machine is busy, the link may come up so late that the outage was longer than it may be.
      for (let again = 0; run.seconds >= 8 && again < 4; again++) run = await throughOutage(each, context.skip);
      const reports = [{ ready: true }, { count: expect.any(Number), last: 1 }, { closed: true }];
      expect(run.outcomes, `an outage of ${run.seconds.toFixed(1)} s`).toEqual([
        { reports, stderr: "" },
        { reports, stderr: "" },
      ]);
    },
  );

  it.concurrent("lets ranks join that begin meanwhile", async (context) => {
    await using world = await openWorld({ engine: "tcp", program: "run-for.ts", args: ["idle", "1"] }, context.skip);
    world.data.takeDown();
    await using run = await world.start();
    await sleep(5000);
    world.data.bringUp();
    for (const { reports } of await run.end()) expect(reports.at(-1)).toEqual({ closed: true });
  });

  // The rank that calls has no route, or a route to a machine that does not answer.
  it.concurrent.for(
    engines.flatMap((engine) => (["caller's", "listener's"] as const).map((side) => ({ engine, side }))),
  )("lets data connections begin meanwhile, at the $side side: $engine", async ({ engine, side }, context) => {
    const options = { engine, program: "run-for.ts", args: ["idle", "1", "says-when-it-joins"], apart: true };
    await using world = await openWorld(options, context.skip);
    const end = side === "caller's" ? "there" : "here"; // rank 1, whose address is the higher one, calls
    world.data.takeDown(end);
    await using run = await world.start();
    await Promise.all(run.ranks.map((rank) => rank.reported("joining")));
    await sleep(7000);
    world.data.bringUp(end);
    for (const { reports } of await run.end()) expect(reports.at(-1)).toEqual({ closed: true });
  });
});

describe("a network that carries the rendezvous, and drops the ranks' own connections, as a firewall does", () => {
  it.concurrent.for(engines)("is named with its addresses and what helps: %s", async (engine, context) => {
    await using world = await openWorld({ engine, program: "join.ts", args: ["12"], apart: true }, context.skip);
    const { here, there } = world.data;
    // What goes to this machine by that link goes to an interface that no machine has.
    expect(world.namespace.ip(`neigh replace ${here} lladdr 02:00:00:00:00:01 dev link0 nud permanent`)).toBe(true);
    await using run = await world.start();
    const address = `(${here}|${there}|\\[${here}\\]|\\[${there}\\]):\\d+`;
    const remedy =
      "the machines must accept each other's connections at any port: let their firewalls pass them, or choose another network with TERSE_ADDRESS";
    for (const outcome of await run.end())
      expect(errorOf(outcome)?.message).toMatch(
        new RegExp(`no connection to rank [01] \\(.*${address}.*\\); ${remedy}$`),
      );
  });
});

describe("a link that is down for longer", () => {
  it.concurrent.for(engines.flatMap((engine) => (["busy", "idle"] as const).map((mode) => ({ engine, mode }))))(
    "ends every rank with an error that says so: $engine, $mode",
    async ({ engine, mode }, context) => {
      const options = { engine, program: "run-for.ts", args: [mode, "1000"], outageSeconds: 2 };
      await using world = await openWorld(options, context.skip);
      await using run = await world.start();
      await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
      world.data.takeDown();
      for (const outcome of await run.end()) {
        const { name, message } = errorOf(outcome)!;
        expect(name).toMatch(/^(RankLostError|RendezvousError|CollectiveError)$/);
        expect(message).toMatch(
          /no heartbeat for .* s; its process is stopped, or its machine is not reachable|both ranks/,
        );
      }
    },
  );
});
