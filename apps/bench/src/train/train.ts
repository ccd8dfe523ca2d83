/**
 * `bench train`: steps of the small GPT on slow links, end to end. Each rank is a host of its own, with one thread; all sides take
 * turns in one run, on the same batches from the same weights.
 */
import { Hosts } from "../hosts/hosts.ts";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import type { Steps } from "./host.ts";
import { ours, peers } from "./sides.ts";

interface Setting {
  readonly ranks: number;
  readonly rate: string;
  /** How often every side takes its turn, and for how many steps. */
  readonly turns: number;
  readonly stepsInTurn: number;
}

const settings: readonly Setting[] = [
  { ranks: 2, rate: "100mbit", turns: 4, stepsInTurn: 3 },
  { ranks: 4, rate: "100mbit", turns: 4, stepsInTurn: 3 },
  { ranks: 2, rate: "1gbit", turns: 6, stepsInTurn: 5 },
  { ranks: 4, rate: "1gbit", turns: 6, stepsInTurn: 3 },
  { ranks: 2, rate: "20mbit", turns: 5, stepsInTurn: 2 }, // nine minutes
];
const warmUp = 4; // steps; PowerSGD sends everything in its first two

const program = new URL("./host.ts", import.meta.url);

/** Ranks and their links. */
export const train: Suite = Object.fromEntries(
  settings.map((setting) => [`${setting.ranks}x${setting.rate}`, () => measure(setting)]),
);

async function* measure({ ranks, rate, turns, stepsInTurn }: Setting): AsyncGenerator<Measurement> {
  await using hosts = await Hosts.open({ hosts: ranks, rate, program });
  const emulated = hosts.links === "emulated";
  if (emulated) process.stderr.write("no network namespaces here: our links are emulated, and PyTorch's cannot be\n");
  const inCase = (name: string) => `${name} ×${ranks} ${rate}${emulated ? " emulated" : ""}`;

  for (const side of ours) await hosts.ask({ do: "open", ...side });
  const theirs = emulated ? [] : peers;
  if (theirs.length > 0) await hosts.ask({ do: "openPeers", peers: theirs, steps: warmUp + turns * stepsInTurn });
  const sides = [...ours, ...theirs].map(({ name }) => new Side(name));
  const turn = async (side: Side, steps: number) =>
    side.add(await hosts.ask<Steps>({ do: "run", side: side.name, steps }));

  for (const side of sides) await turn(side, warmUp);
  for (const side of sides) side.forget();
  for (let i = 0; i < turns; i++) {
    // From the first side to the last, and back: what changes slowly on the machine meets all alike.
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) await turn(side, stepsInTurn);
    process.stderr.write(`${ranks} ranks, ${rate}: turn ${i + 1} of ${turns}\n`);
  }
  await hosts.ask({ do: "close" });

  for (const side of sides)
    for (const measurement of side.measurements()) yield { ...measurement, case: inCase(side.name) };
  yield* comparisons(sides, inCase);
}

function* comparisons(sides: readonly Side[], inCase: (name: string) => string): Generator<Measurement> {
  const step = (name: string) => sides.find((side) => side.name === name)?.step;
  const lion = step("lion fp32 without-overlap")!;
  const powersgd = step("pytorch ddp powersgd rank 2");
  for (const overlap of ["without-overlap", "with-overlap"]) {
    const name = `lion-cub 1-bit ${overlap}`;
    const own = step(name)!;
    const ratio = (metric: string, value: number) => ({ case: inCase(name), metric, value, unit: "ratio" });
    yield ratio("speedup_over_lion_f32", lion / own);
    if (powersgd !== undefined) yield ratio("speedup_over_powersgd", powersgd / own);
  }
}

/** What one side has taken so far. */
class Side {
  readonly name: string;
  #milliseconds: number[] = [];
  #exposed: number[] = []; // of the same steps, on the rank that waits least: the others wait for its backward, not for the network
  #exposedMost: number[] = [];
  #bytes: number[] = [];
  #linkBytes: number[] = [];
  #loss = Number.NaN;

  constructor(name: string) {
    this.name = name;
  }

  /** The ranks' accounts of the same steps: a step takes as long as on its slowest rank. */
  add(ranks: readonly Steps[]): void {
    const all = (of: (step: Steps["steps"][number]) => number, i: number) => ranks.map(({ steps }) => of(steps[i]!));
    const most = (of: (step: Steps["steps"][number]) => number, i: number) => Math.max(...all(of, i));
    for (const i of ranks[0]!.steps.keys()) {
      this.#milliseconds.push(most(({ milliseconds }) => milliseconds, i));
      const exposed = all(({ exposedMilliseconds }) => exposedMilliseconds, i);
      this.#exposed.push(Math.min(...exposed));
      this.#exposedMost.push(Math.max(...exposed));
      const bytes = most(({ bytes }) => bytes ?? Number.NaN, i);
      if (!Number.isNaN(bytes)) this.#bytes.push(bytes);
      this.#loss = ranks.reduce((sum, { steps }) => sum + steps[i]!.loss / ranks.length, 0);
    }
    const onLink = Math.max(...ranks.map(({ linkBytes }) => linkBytes ?? Number.NaN));
    if (!Number.isNaN(onLink)) this.#linkBytes.push(onLink / ranks[0]!.steps.length);
  }

  /** The warm-up is over. */
  forget(): void {
    const lists = [this.#milliseconds, this.#exposed, this.#exposedMost, this.#bytes, this.#linkBytes];
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
    yield { metric: "exposed_fraction_most", value: median(fractions(this.#exposedMost)), unit: "fraction" };
    if (this.#bytes.length > 0) yield { metric: "sent_bytes", value: median(this.#bytes), unit: "B" };
    if (this.#linkBytes.length > 0) yield { metric: "link_bytes", value: median(this.#linkBytes), unit: "B" };
    yield { metric: "loss", value: this.#loss, unit: "nats" };
  }
}
