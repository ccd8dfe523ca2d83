/**
 * `bench train`: training steps of the small GPT on slow links. Each rank is a host of its own, with one thread. All
 * sides run alternately, with the same initial weights and the same batches.
 */
import { Hosts } from "../hosts/hosts.ts";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import type { Steps } from "./host.ts";
import { projection } from "./projection.ts";
import {
  fp16Hook,
  hooks,
  type OurSide,
  ours,
  oursOfMethods,
  type PeerSide,
  peers,
  peersOfMethods,
  powersgdOf,
} from "./sides.ts";

interface Setting {
  readonly ranks: number;
  readonly rate: string;
  /** The sides to compare, where they are not `ours` and `peers`. */
  readonly sides?: { readonly name: string; readonly ours: readonly OurSide[]; readonly peers: readonly PeerSide[] };
  /** Each side takes `stepsPerRound` steps in each of `rounds`. */
  readonly rounds: number;
  readonly stepsPerRound: number;
}

const settings: readonly Setting[] = [
  { ranks: 2, rate: "100mbit", rounds: 4, stepsPerRound: 3 },
  { ranks: 4, rate: "100mbit", rounds: 4, stepsPerRound: 3 },
  { ranks: 2, rate: "1gbit", rounds: 6, stepsPerRound: 5 },
  { ranks: 4, rate: "1gbit", rounds: 6, stepsPerRound: 3 },
  { ranks: 2, rate: "20mbit", rounds: 5, stepsPerRound: 2 }, // nine minutes
  {
    ranks: 2,
    rate: "100mbit",
    rounds: 4,
    stepsPerRound: 3,
    sides: { name: "methods", ours: oursOfMethods, peers: peersOfMethods },
  },
  { ranks: 2, rate: "100mbit", rounds: 4, stepsPerRound: 3, sides: { name: "torch_hook", ours: [], peers: hooks } },
];
const warmUp = 4; // steps; PowerSGD sends everything in its first two

const program = new URL("./host.ts", import.meta.url);

/** A setting for each number of ranks and link, and one for the sizes of the papers' models. */
export const train: Suite = {
  ...Object.fromEntries(
    settings.map((setting) => [
      `${setting.ranks}x${setting.rate}${setting.sides ? `-${setting.sides.name}` : ""}`,
      () => measure(setting),
    ]),
  ),
  projection,
};

async function* measure({ ranks, rate, rounds, stepsPerRound, sides: chosen }: Setting): AsyncGenerator<Measurement> {
  await using hosts = await Hosts.open({ hosts: ranks, rate, program });
  const emulated = hosts.links === "emulated";
  if (emulated)
    process.stderr.write(
      "this machine allows no network namespaces: our links are emulated; PyTorch cannot be measured\n",
    );
  const inCase = (name: string) =>
    `${name} ×${ranks} ${rate}${emulated ? " emulated" : ""}${chosen ? `, ${chosen.name}` : ""}`;

  const { ours: mine, peers: all } = chosen ?? { ours, peers };
  for (const side of mine) await hosts.ask({ do: "open", ...side });
  const theirs = emulated ? [] : all;
  if (theirs.length > 0) await hosts.ask({ do: "openPeers", peers: theirs, steps: warmUp + rounds * stepsPerRound });
  const sides = [...mine, ...theirs].map(({ name }) => new Side(name));
  const run = async (side: Side, steps: number) =>
    side.add(await hosts.ask<Steps>({ do: "run", side: side.name, steps }));

  for (const side of sides) await run(side, warmUp);
  for (const side of sides) side.forget();
  for (let i = 0; i < rounds; i++) {
    // In alternating order, so that slow changes of the machine affect all sides alike.
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) await run(side, stepsPerRound);
    process.stderr.write(`${ranks} ranks, ${rate}: round ${i + 1} of ${rounds}\n`);
  }
  await hosts.ask({ do: "close" });

  for (const side of sides)
    for (const measurement of side.measurements()) yield { ...measurement, case: inCase(side.name) };
  yield* comparisons(sides, inCase);
}

function* comparisons(sides: readonly Side[], inCase: (name: string) => string): Generator<Measurement> {
  const step = (name: string) => sides.find((side) => side.name === name)?.step;
  for (const { name, step: own } of sides) {
    const byFp16 = step(fp16Hook);
    if (name.startsWith("terse_torch") && byFp16 !== undefined)
      yield { case: inCase(name), metric: "step_over_fp16_hook", value: byFp16 / own, unit: "ratio" };
    if (!/^(lion-cub|lion powersgd|dion|one-bit)/.test(name)) continue;
    const others = {
      speedup_over_lion_f32: "lion fp32 without-overlap",
      speedup_over_powersgd: powersgdOf(name),
    };
    for (const [metric, other] of Object.entries(others)) {
      const theirs = step(other);
      if (theirs !== undefined) yield { case: inCase(name), metric, value: theirs / own, unit: "ratio" };
    }
  }
}

/** The measurements of one side. */
class Side {
  readonly name: string;
  #milliseconds: number[] = [];
  #exposed: number[] = []; // on the rank that waits most
  #exposedLeast: number[] = [];
  #bytes: number[] = [];
  #linkBytes: number[] = [];
  #loss = Number.NaN;

  constructor(name: string) {
    this.name = name;
  }

  /** Adds the same steps of all ranks; a step takes as long as on its slowest rank. */
  add(ranks: readonly Steps[]): void {
    const all = (of: (step: Steps["steps"][number]) => number, i: number) => ranks.map(({ steps }) => of(steps[i]!));
    const most = (of: (step: Steps["steps"][number]) => number, i: number) => Math.max(...all(of, i));
    for (const i of ranks[0]!.steps.keys()) {
      this.#milliseconds.push(most(({ milliseconds }) => milliseconds, i));
      const exposed = all(({ exposedMilliseconds }) => exposedMilliseconds, i);
      this.#exposed.push(Math.max(...exposed));
      this.#exposedLeast.push(Math.min(...exposed));
      const bytes = most(({ bytes }) => bytes ?? Number.NaN, i);
      if (!Number.isNaN(bytes)) this.#bytes.push(bytes);
      this.#loss = ranks.reduce((sum, { steps }) => sum + steps[i]!.loss / ranks.length, 0);
    }
    const onLink = Math.max(...ranks.map(({ linkBytes }) => linkBytes ?? Number.NaN));
    if (!Number.isNaN(onLink)) this.#linkBytes.push(onLink / ranks[0]!.steps.length);
  }

  /** Drops the measurements of the warm-up. */
  forget(): void {
    const lists = [this.#milliseconds, this.#exposed, this.#exposedLeast, this.#bytes, this.#linkBytes];
    for (const list of lists) list.length = 0;
  }

  /** Median milliseconds. */
  get step(): number {
    return median(this.#milliseconds);
  }

  *measurements(): Generator<Omit<Measurement, "case">> {
    yield { metric: "step_ms", value: this.step, unit: "ms" };
    yield { metric: "step_ms_min", value: Math.min(...this.#milliseconds), unit: "ms" };
    yield { metric: "step_ms_max", value: Math.max(...this.#milliseconds), unit: "ms" };
    yield { metric: "steps", value: this.#milliseconds.length, unit: "" };
    const fractions = (of: readonly number[]) => of.map((exposed, i) => exposed / this.#milliseconds[i]!);
    yield { metric: "exposed_ms", value: median(this.#exposed), unit: "ms" };
    yield { metric: "exposed_fraction", value: median(fractions(this.#exposed)), unit: "fraction" };
    yield { metric: "exposed_fraction_least", value: median(fractions(this.#exposedLeast)), unit: "fraction" };
    if (this.#bytes.length > 0) yield { metric: "sent_bytes", value: median(this.#bytes), unit: "B" };
    if (this.#linkBytes.length > 0) yield { metric: "link_bytes", value: median(this.#linkBytes), unit: "B" };
    yield { metric: "loss", value: this.#loss, unit: "nats" };
  }
}
