/**
 * `bench collectives`: how much of an emulated link the collectives use, and the latency of small ones; over Gloo also
 * compared with Gloo's own collectives.
 */
import { type Group, joinWorld, loopback, serveRendezvous } from "@terse/collectives";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import { besideGloo } from "./beside-gloo.ts";

const mebibyte = 1 << 20;
const slow = { text: "100mbit,1ms", bitsPerSecond: 100e6 };

export interface World extends AsyncDisposable {
  readonly groups: readonly Group[];
}

export const engines: Record<string, (size: number, emulateLink?: string) => Promise<World>> = {
  loopback: async (size, emulateLink) => worldOf(loopback(size, { emulateLink })),
  tcp: (size, emulateLink) => joined("tcp", size, emulateLink),
  gloo: (size, emulateLink) => joined("gloo", size, emulateLink),
};

/** All ranks in this process, connected over the loopback interface. */
async function joined(engine: "tcp" | "gloo", size: number, emulateLink?: string): Promise<World> {
  const server = await serveRendezvous({ size, token: "bench" });
  const env = (rank: number) => ({
    RANK: `${rank}`,
    WORLD_SIZE: `${size}`,
    TERSE_TOKEN: "bench",
    TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
  });
  const groups = await Promise.all(
    Array.from({ length: size }, (_, r) => joinWorld({ engine, env: env(r), emulateLink })),
  );
  return worldOf(groups, () => server.close());
}

function worldOf(groups: readonly Group[], after = async () => {}): World {
  return {
    groups,
    async [Symbol.asyncDispose]() {
      await Promise.all(groups.map((group) => group.close()));
      await after();
    },
  };
}

/** A setting for each engine. */
export const collectives: Suite = Object.fromEntries(
  Object.keys(engines).map((engine) => [engine, () => ofEngine(engine)]),
);

async function* ofEngine(engine: string): AsyncGenerator<Measurement> {
  yield* linkUse(engine, 2);
  yield* linkUse(engine, 4);
  yield* latency(engine, 4);
  if (engine === "gloo") for (const ranks of [2, 4]) yield* besideGloo(ranks);
}

/** The bytes that the busiest rank sent ÷ the bytes that its link could have carried in the same time. */
async function* linkUse(engine: string, size: number): AsyncGenerator<Measurement> {
  await using world = await engines[engine]!(size, slow.text);
  const x = world.groups.map(() => new Float32Array((16 * mebibyte) / 4));
  const whole = x.map((each) => new Uint8Array(each.buffer));
  const into = x.map((each) => new Uint8Array(each.byteLength).fill(1)); // touched, so that no page fault is measured
  const parts = (bytes: Uint8Array) => world.groups.map((_, r) => slice(bytes, r, size));
  const calls: Record<string, (group: Group) => Promise<unknown>> = {
    "all-reduce": (group) => group.allReduce(x[group.rank]!),
    "all-to-all": (group) => group.allToAll(parts(whole[group.rank]!), parts(into[group.rank]!)),
    "all-gather": (group) => group.allGather(parts(whole[group.rank]!)),
  };
  for (const [name, call] of Object.entries(calls)) {
    await Promise.all(world.groups.map((group) => group.barrier()));
    const before = world.groups.map(bytesSent);
    const begin = performance.now();
    await Promise.all(world.groups.map(call));
    const seconds = (performance.now() - begin) / 1000;
    const busiest = Math.max(...world.groups.map((group, r) => bytesSent(group) - before[r]!));
    const value = (8 * busiest) / (slow.bitsPerSecond * seconds);
    yield { case: `${engine} ${name} 16 MiB ${slow.text} ×${size}`, metric: "link_use", value, unit: "fraction" };
  }
}

/** The time until all ranks have a few bytes. */
async function* latency(engine: string, size: number): AsyncGenerator<Measurement> {
  await using world = await engines[engine]!(size);
  const x = world.groups.map(() => new Uint8Array(32));
  const calls: Record<string, (group: Group) => Promise<unknown>> = {
    barrier: (group) => group.barrier(),
    broadcast: (group) => group.broadcast(x[group.rank]!, 0),
    "all-reduce": (group) => group.allReduce(x[group.rank]!),
  };
  for (const [name, call] of Object.entries(calls)) {
    const times: number[] = [];
    for (let k = 0; k < 300; k++) {
      const begin = performance.now();
      await Promise.all(world.groups.map(call));
      times.push(1000 * (performance.now() - begin));
    }
    yield { case: `${engine} ${name} 32 B ×${size}`, metric: "latency", value: median(times.slice(50)), unit: "µs" };
  }
}

function slice(bytes: Uint8Array, rank: number, size: number): Uint8Array {
  const at = (r: number) => Math.floor((bytes.length * r) / size);
  return bytes.subarray(at(rank), at(rank + 1));
}

function bytesSent(group: Group): number {
  const { bytes, headerBytes } = group.sent();
  return bytes + headerBytes;
}
