/**
 * How long steps take on links, with four processes: those of local steps, and beside them those of some methods that
 * send in every step. The kernel limits the rate of a link (`./terse netlab`). A link with a latency is emulated, and
 * PyTorch cannot be measured on it.
 */
import { ranksOnLinks, timesOnLinks } from "../convergence/convergence.ts";
import { curvesOf } from "../convergence/curves.ts";
import { methods as everyStep } from "../convergence/methods.ts";
import { meansByBytes } from "../convergence/times.ts";
import type { Trained } from "../convergence/training.ts";
import { type Measurement, median } from "../measurement.ts";
import { recordedLines, recordedValues } from "../papers/recorded.ts";
import { type LocalMethod, methods } from "./methods.ts";
import { beginOf, overridesFor } from "./overrides-for.ts";

/** The settings that time steps of all methods, and their links as `Hosts` takes them. */
export const rates = {
  "10mbit": "10mbit",
  "20mbit": "20mbit",
  "100mbit": "100mbit",
  "10mbit-50ms": "10mbit,50ms",
} as const;
export type RateName = keyof typeof rates;

/** Timed beside local steps, on links on which `bench convergence` has not timed them. */
const beside = [
  "pytorch-ddp",
  "pytorch-ddp-fp16",
  "pytorch-ddp-powersgd-8",
  "adamw",
  "muon",
  "adamw-terngrad",
  "lion-cub-beta-0.95",
  "signum",
];
const [runs, leastRounds, leastSteps] = [2, 4, 32];

/** Steps of each kind on links of a rate, and what follows for the losses that are recorded. */
export async function* seconds(rate: RateName): AsyncGenerator<Measurement> {
  const measured: Measurement[] = [];
  for await (const one of stepsOn(rate)) {
    measured.push(one);
    yield one;
  }
  for (const curve of curvesOf([...recordedLines("convergence"), ...recordedLines("local"), ...measured])) {
    const value = curve.method in methods ? curve.toLoss(rate)?.ratio : undefined;
    if (value !== undefined) yield { case: `${curve.method}, ${rate}`, metric: "time_to_loss", value, unit: "ratio" };
  }
}

async function* stepsOn(rate: RateName): AsyncGenerator<Measurement> {
  const link = rates[rate];
  for (const name of beside) {
    const { changes, hook } = everyStep[name]!;
    if (hook !== undefined && link.includes(",")) continue;
    if (recordedValues("convergence").has(`${name}, ${rate}`)) continue;
    const { times } = await timesOnLinks(link, [...changes, "seed=1"], hook);
    yield* timesOf(`${name}, ${rate}`, times);
  }
  for (const [name, method] of Object.entries(methods)) {
    if (!isTimed(name, method)) continue;
    const overrides = [...overridesFor(method, beginOf(method), []), "seed=1"];
    const { syncEvery } = method as Required<LocalMethod>;
    const take = Math.max(leastRounds, Math.ceil(leastSteps / syncEvery)) * syncEvery;
    // Ranks wait for each other only in rounds: the times of one rank add up to those of all.
    const firsts: Trained["steps"][] = [];
    for (let run = 0; run < runs; run++) firsts.push((await ranksOnLinks(link, overrides, { take }))[0]!);
    const total = (steps: Trained["steps"]) => steps.slice(syncEvery).reduce((sum, step) => sum + step.milliseconds, 0);
    const fastest = firsts.reduce((a, b) => (total(b) < total(a) ? b : a));
    yield* timesOf(`${name}, ${rate}`, meansByBytes(fastest, syncEvery));
  }
}

/** Methods of four workers whose losses are recorded. */
function isTimed(name: string, { syncEvery, workers, steps }: LocalMethod): boolean {
  if (syncEvery === undefined || workers !== undefined || steps !== undefined) return false;
  return recordedValues("local").has(`${name}, seed 1`);
}

function* timesOf(name: string, kinds: ReadonlyMap<number, number>): Generator<Measurement> {
  for (const [bytes, value] of kinds) yield { case: name, metric: `ms_of_${bytes}`, value, unit: "ms" };
}

/**
 * A step with rounds that travel beside the steps ÷ a step without any message, the mean over whole rounds: Muon
 * inside, 4 bits, a round every 20 steps that is used 18 steps after it has left; 10 Mbit/s and 200 ms. Both take
 * turns.
 */
export async function* overNoExchange(): AsyncGenerator<Measurement> {
  const [rate, every, delay, turns] = ["10mbit,200ms", 20, 18, 3];
  const method: LocalMethod = {
    ...methods["muon-10-4-bits"]!,
    syncEvery: every,
    changes: [...methods["muon-10-4-bits"]!.changes, `local.delay=${delay}`],
  };
  const overrides = overridesFor(method, beginOf(method), ["seed=1"]);
  const never = [...overrides, "local.syncEvery=400", "local.delay=0"];
  const stepOf = async (words: readonly string[]) => {
    const ranks = await ranksOnLinks(rate, words, { take: 3 * every });
    const means = ranks.map((steps) => {
      const later = steps.slice(every); // the first interval has pages to touch
      return later.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / later.length;
    });
    return Math.max(...means);
  };
  const rows: { own: number; none: number }[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const none = turn % 2 === 0 ? await stepOf(never) : undefined;
    const own = await stepOf(overrides);
    rows.push({ own, none: none ?? (await stepOf(never)) });
  }
  const inCase = { case: `muon-${every}-4-bits-delay-${delay}, 10mbit-200ms` };
  yield { ...inCase, metric: "step_ms", value: median(rows.map(({ own }) => own)), unit: "ms" };
  yield { ...inCase, metric: "no_exchange_ms", value: median(rows.map(({ none }) => none)), unit: "ms" };
  const value = median(rows.map(({ own, none }) => own / none));
  yield { ...inCase, metric: "step_over_no_exchange", value, unit: "ratio" };
}
