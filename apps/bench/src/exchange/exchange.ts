/**
 * `bench exchange`: the time to make a vector of floats the same on all ranks. As in nccl-tests, algbw is the vector's
 * bytes ÷ time, and busbw is algbw × 2 (n − 1)/n, the rate on each link of a ring.
 */
import { mkdtempDisposableSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildGlooPeer } from "../gloo-peer.ts";
import { Hosts } from "../hosts/hosts.ts";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import type { Method, Times } from "./host.ts";
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
  const methods: Method[] = ["f32", "1-bit"];
  if (hosts.links === "namespaces") {
    await hosts.ask({ do: "peers", folder: "" });
    methods.push("pytorch f32", "pytorch compressed");
  }
  const measured = await alternate(hosts, methods, n, { rounds: 3, times: { "1-bit": 4, "pytorch compressed": 2 } });
  for (const [method, times] of measured) {
    yield* bandwidths(`${method} ${suffix}`, times, n, ranks);
    if (times.bytes === undefined) continue;
    const most = 8 * Math.max(times.bytes, times.linkBytes ?? 0);
    yield {
      case: `${method} ${suffix}`,
      metric: "link_use",
      value: most / bitsPerSecond / (times.median / 1000),
      unit: "fraction",
    };
  }
  const time = (method: Method) => measured.get(method)?.median;
  const ratio = (metric: string, value: number) => ({ case: `1-bit ${suffix}`, metric, value, unit: "ratio" });
  yield ratio("speedup_over_f32", time("f32")! / time("1-bit")!);
  if (time("pytorch f32")) yield ratio("speedup_over_pytorch_f32", time("pytorch f32")! / time("1-bit")!);
  if (time("pytorch compressed")) yield ratio("speedup_over_compressed", time("pytorch compressed")! / time("1-bit")!);
  await hosts.ask({ do: "close" });
}

/** All-reduce over TCP on the loopback interface, where only the processor limits the speed. */
async function* unshaped(ranks: number): AsyncGenerator<Measurement> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "terse-bench-gloo-"));
  yield* besideGloo(ranks, buildGlooPeer(folder.path), folder.path);
}

async function* besideGloo(ranks: number, gloo: string | undefined, folder: string): AsyncGenerator<Measurement> {
  await using hosts = await Hosts.open({ hosts: ranks, program });
  await hosts.ask({ do: "peers", program: gloo, folder: mkdtempSync(join(folder, "store-")) });
  const methods: Method[] = gloo ? ["f32", "gloo f32", "pytorch f32"] : ["f32", "pytorch f32"];
  for (const bytes of [1, 4, 16, 64].map((size) => size * mebi)) {
    const n = bytes / 4;
    const times = Math.max(2, Math.min(20, (64 * mebi) / bytes));
    const measured = await alternate(hosts, methods, n, {
      rounds: 7,
      times: Object.fromEntries(methods.map((method) => [method, times])),
    });
    const suffix = `${bytes / mebi} MiB ×${ranks} loopback TCP`;
    for (const [method, times] of measured) yield* bandwidths(`${method} ${suffix}`, times, n, ranks);
    for (const peer of methods.slice(1)) {
      const metric = peer === "gloo f32" ? "over_gloo" : "over_pytorch";
      const ratios = measured.get("f32")!.byRound.map((own, i) => measured.get(peer)!.byRound[i]! / own);
      yield { case: `f32 ${suffix}`, metric, value: median(ratios), unit: "ratio" };
    }
  }
  const voteMethods: Method[] = ["1-bit", "pytorch compressed"];
  const measured = await alternate(hosts, voteMethods, 16 * mebi, {
    rounds: 3,
    times: { "1-bit": 4, "pytorch compressed": 2 },
  });
  for (const [method, times] of measured)
    yield* bandwidths(`${method} 16 Mi ×${ranks} loopback TCP`, times, 16 * mebi, ranks);
  const value = measured.get("pytorch compressed")!.median / measured.get("1-bit")!.median;
  yield { case: `1-bit 16 Mi ×${ranks} loopback TCP`, metric: "speedup_over_compressed", value, unit: "ratio" };

  const extra = await hosts.ask<number>({ do: "memory", n: 64 * mebi });
  const name = `1-bit 64 Mi ×${ranks} loopback TCP`;
  yield { case: name, metric: "extra_bytes_per_parameter", value: Math.max(...extra), unit: "B" };
  await hosts.ask({ do: "close" });
}

/** The times of one method; an exchange takes as long as on its slowest rank. */
interface MethodTimes {
  readonly median: number; // milliseconds
  readonly byRound: readonly number[]; // the median of each round
  readonly wrong: number | undefined;
  readonly bytes: number | undefined;
  readonly linkBytes: number | undefined;
  /** Phases of each exchange, on its slowest rank. */
  readonly phases: readonly Phases[];
}

/**
 * Runs all methods alternately, so that changes of the machine affect all of them equally. The first round is not
 * counted.
 */
async function alternate(
  hosts: Hosts,
  methods: readonly Method[],
  n: number,
  { rounds, times }: { rounds: number; times: Partial<Record<Method, number>> },
): Promise<Map<Method, MethodTimes>> {
  const all = new Map<Method, { milliseconds: number[][]; last: readonly Times[]; phases: Phases[] }>();
  for (let round = -1; round < rounds; round++)
    for (const method of round % 2 === 0 ? methods : methods.toReversed()) {
      const answers = await hosts.ask<Times>({ do: "run", method, n, times: round < 0 ? 1 : (times[method] ?? 1) });
      const slowest = answers[0]!.milliseconds.map((_, i) =>
        answers.reduce((a, b) => (b.milliseconds[i]! > a.milliseconds[i]! ? b : a)),
      );
      const entry = all.get(method) ?? { milliseconds: [], last: answers, phases: [] };
      if (round >= 0) {
        entry.milliseconds.push(slowest.map(({ milliseconds }, i) => milliseconds[i]!));
        entry.phases.push(...slowest.flatMap(({ phases }, i) => phases?.[i] ?? []));
      }
      all.set(method, { ...entry, last: answers });
    }
  const most = (values: readonly (number | undefined | null)[]) =>
    values[0] === undefined || values[0] === null ? undefined : Math.max(...(values as number[]));
  return new Map(
    methods.map((method) => {
      const { milliseconds, last, phases } = all.get(method)!;
      return [
        method,
        {
          median: median(milliseconds.flat()),
          byRound: milliseconds.map(median),
          wrong: most(last.map(({ wrong }) => wrong)),
          bytes: most(last.map(({ bytes }) => bytes)),
          linkBytes: most(last.map(({ linkBytes }) => linkBytes)),
          phases,
        },
      ];
    }),
  );
}

function* bandwidths(name: string, taken: MethodTimes, n: number, ranks: number): Generator<Measurement> {
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
