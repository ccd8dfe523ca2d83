/**
 * `bench exchange`: the time until a vector of floats is the same on all ranks. As in nccl-tests, algbw is the vector's bytes ÷ time, and
 * busbw is algbw × 2 (n − 1)/n, the rate on each link of a ring.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildGlooPeer } from "../gloo-peer.ts";
import { Hosts } from "../hosts/hosts.ts";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import type { Times, Way } from "./host.ts";
import type { Phases } from "./phases.ts";

const mebi = 1 << 20;
const program = new URL("./host.ts", import.meta.url);

/** A number of ranks and their links. */
export const exchange: Suite = {
  "2xloopback": () => unshaped(2),
  "4xloopback": () => unshaped(4),
  "2x100mbit": () => onSlowLinks(2, "100mbit", 1e8),
  "4x100mbit": () => onSlowLinks(4, "100mbit", 1e8),
};

/** 16 Mi parameters, where links limit the speed. */
async function* onSlowLinks(ranks: number, rate: string, bitsPerSecond: number): AsyncGenerator<Measurement> {
  const n = 16 * mebi;
  await using hosts = await Hosts.open({ hosts: ranks, rate, program });
  const suffix = `16 Mi ×${ranks} ${rate}${hosts.links === "emulated" ? " emulated" : ""}`;
  const ways: Way[] = ["f32", "1-bit"];
  if (hosts.links === "namespaces") {
    await hosts.ask({ do: "peers", folder: "" });
    ways.push("pytorch f32", "pytorch compressed");
  }
  const measured = await alternate(hosts, ways, n, { turns: 3, times: { "1-bit": 4, "pytorch compressed": 2 } });
  for (const [way, times] of measured) {
    yield* bandwidths(`${way} ${suffix}`, times, n, ranks);
    if (times.bytes === undefined) continue;
    const most = 8 * Math.max(times.bytes, times.linkBytes ?? 0);
    yield {
      case: `${way} ${suffix}`,
      metric: "link_use",
      value: most / bitsPerSecond / (times.median / 1000),
      unit: "fraction",
    };
  }
  const time = (way: Way) => measured.get(way)?.median;
  const ratio = (metric: string, value: number) => ({ case: `1-bit ${suffix}`, metric, value, unit: "ratio" });
  yield ratio("speedup_over_f32", time("f32")! / time("1-bit")!);
  if (time("pytorch f32")) yield ratio("speedup_over_pytorch_f32", time("pytorch f32")! / time("1-bit")!);
  if (time("pytorch compressed")) yield ratio("speedup_over_compressed", time("pytorch compressed")! / time("1-bit")!);
  await hosts.ask({ do: "close" });
}

/** All-reduce over TCP on the loopback interface, where only the processor limits the speed. */
async function* unshaped(ranks: number): AsyncGenerator<Measurement> {
  const folder = mkdtempSync(join(tmpdir(), "terse-bench-gloo-"));
  try {
    yield* besideGloo(ranks, buildGlooPeer(folder), folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function* besideGloo(ranks: number, gloo: string | undefined, folder: string): AsyncGenerator<Measurement> {
  await using hosts = await Hosts.open({ hosts: ranks, program });
  await hosts.ask({ do: "peers", program: gloo, folder: mkdtempSync(join(folder, "store-")) });
  const ways: Way[] = gloo ? ["f32", "gloo f32", "pytorch f32"] : ["f32", "pytorch f32"];
  for (const bytes of [1, 4, 16, 64].map((size) => size * mebi)) {
    const n = bytes / 4;
    const times = Math.max(2, Math.min(20, (64 * mebi) / bytes));
    const measured = await alternate(hosts, ways, n, {
      turns: 7,
      times: Object.fromEntries(ways.map((way) => [way, times])),
    });
    const suffix = `${bytes / mebi} MiB ×${ranks} loopback TCP`;
    for (const [way, times] of measured) yield* bandwidths(`${way} ${suffix}`, times, n, ranks);
    for (const peer of ways.slice(1)) {
      const metric = peer === "gloo f32" ? "over_gloo" : "over_pytorch";
      const rounds = measured.get("f32")!.turns.map((own, i) => measured.get(peer)!.turns[i]! / own);
      yield { case: `f32 ${suffix}`, metric, value: median(rounds), unit: "ratio" };
    }
  }
  const ways1: Way[] = ["1-bit", "pytorch compressed"];
  const measured = await alternate(hosts, ways1, 16 * mebi, {
    turns: 3,
    times: { "1-bit": 4, "pytorch compressed": 2 },
  });
  for (const [way, times] of measured)
    yield* bandwidths(`${way} 16 Mi ×${ranks} loopback TCP`, times, 16 * mebi, ranks);
  const value = measured.get("pytorch compressed")!.median / measured.get("1-bit")!.median;
  yield { case: `1-bit 16 Mi ×${ranks} loopback TCP`, metric: "speedup_over_compressed", value, unit: "ratio" };

  const extra = await hosts.ask<number>({ do: "memory", n: 64 * mebi });
  const name = `1-bit 64 Mi ×${ranks} loopback TCP`;
  yield { case: name, metric: "extra_bytes_per_parameter", value: Math.max(...extra), unit: "B" };
  await hosts.ask({ do: "close" });
}

/** The times of one method; an exchange takes as long as on its slowest rank. */
interface Taken {
  readonly median: number; // milliseconds
  readonly turns: readonly number[]; // the median of each round
  readonly wrong: number | undefined;
  readonly bytes: number | undefined;
  readonly linkBytes: number | undefined;
  /** Phases of each exchange, on its slowest rank. */
  readonly phases: readonly Phases[];
}

/** Runs all methods alternately, so that changes of the machine affect all alike. The first round is not counted. */
async function alternate(
  hosts: Hosts,
  ways: readonly Way[],
  n: number,
  { turns, times }: { turns: number; times: Partial<Record<Way, number>> },
): Promise<Map<Way, Taken>> {
  const all = new Map<Way, { milliseconds: number[][]; last: readonly Times[]; phases: Phases[] }>();
  for (let turn = -1; turn < turns; turn++)
    for (const way of turn % 2 === 0 ? ways : ways.toReversed()) {
      const answers = await hosts.ask<Times>({ do: "run", way, n, times: turn < 0 ? 1 : (times[way] ?? 1) });
      const slowest = answers[0]!.milliseconds.map((_, i) =>
        answers.reduce((a, b) => (b.milliseconds[i]! > a.milliseconds[i]! ? b : a)),
      );
      const entry = all.get(way) ?? { milliseconds: [], last: answers, phases: [] };
      if (turn >= 0) {
        entry.milliseconds.push(slowest.map(({ milliseconds }, i) => milliseconds[i]!));
        entry.phases.push(...slowest.flatMap(({ phases }, i) => phases?.[i] ?? []));
      }
      all.set(way, { ...entry, last: answers });
    }
  const most = (values: readonly (number | undefined | null)[]) =>
    values[0] === undefined || values[0] === null ? undefined : Math.max(...(values as number[]));
  return new Map(
    ways.map((way) => {
      const { milliseconds, last, phases } = all.get(way)!;
      return [
        way,
        {
          median: median(milliseconds.flat()),
          turns: milliseconds.map(median),
          wrong: most(last.map(({ wrong }) => wrong)),
          bytes: most(last.map(({ bytes }) => bytes)),
          linkBytes: most(last.map(({ linkBytes }) => linkBytes)),
          phases,
        },
      ];
    }),
  );
}

function* bandwidths(name: string, taken: Taken, n: number, ranks: number): Generator<Measurement> {
  const algbw = (4 * n) / taken.median / 1e6; // GB/s
  yield { case: name, metric: "time", value: taken.median, unit: "ms" };
  yield { case: name, metric: "algbw", value: algbw, unit: "GB/s" };
  yield { case: name, metric: "busbw", value: (algbw * 2 * (ranks - 1)) / ranks, unit: "GB/s" };
  if (taken.phases.length > 0) {
    const of = (value: (phases: Phases) => number) => median(taken.phases.map(value));
    for (const phase of ["encode", "wire", "vote", "decode"] as const)
      yield { case: name, metric: phase, value: of((each) => each[phase]), unit: "ms" };
    const waiting = of(({ total, encode, vote, decode }) => total - encode - vote - decode);
    yield { case: name, metric: "wire_alone", value: waiting, unit: "ms" };
  }
  if (taken.wrong !== undefined) yield { case: name, metric: "wrong", value: taken.wrong, unit: "" };
  if (taken.bytes !== undefined) yield { case: name, metric: "wire_bytes", value: taken.bytes, unit: "B" };
}
