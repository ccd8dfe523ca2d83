/** The curves of recorded runs: for each method its losses over the seeds, and the bytes and seconds that they took. */
import { type Spread, spreadOf } from "@terse/pictures/spread";
import { byCase, type Measurement, type Values } from "../measurement.ts";
import { longestWarmup } from "./settings.ts";
import { secondsOf } from "./times.ts";

/** What every method is compared with: the loss that this one ends at, within a tolerance. */
export const reference = "adamw";
export const tolerance = 1.005;

/** Whether PyTorch trained it, by DDP or by local SGD. */
export const isPyTorchs = (method: string): boolean => method.startsWith("pytorch-");

export interface Curve {
  readonly method: string;
  readonly seeds: number;
  /** What the search chose; the warm-up is a part of the run. Undefined where it was not recorded. */
  readonly settings: Readonly<Record<"lr" | "warmup" | "beta2", number | undefined>>;
  /** The settings that lie at an edge of the searched range. */
  readonly atEdge: readonly string[];
  readonly last: Spread; // validation loss, nats per byte
  /** The last loss over that of the reference with the same seed. */
  readonly ratio: Spread;
  readonly points: readonly ({ readonly step: number } & Spread)[];
  readonly bytesPerStep: number; // sent by one worker, a mean over the steps
  /** What a worker has sent after so many steps. */
  bytesAfter(step: number): number;
  /** Seconds after so many steps on links of a rate; undefined where they were not measured. */
  secondsAfter(rate: string, step: number): number | undefined;
  /** The time until the method has the reference's loss on links of a rate; undefined where it never has. */
  toLoss(rate: string): TimeToLoss | undefined;
}

export interface TimeToLoss {
  readonly seconds: number;
  /**
   * The fastest of PyTorch's sides ÷ this one. Undefined where none of them was timed.
   */
  readonly ratio: number | undefined;
  /** From a run of another length, which has one seed. */
  readonly oneSeed: boolean;
}

/** `of`: the method whose losses the others are divided by. */
export function curvesOf(measurements: readonly Measurement[], of: string = reference): Curve[] {
  const values = byCase(measurements);
  const methods = methodsIn(values);
  return methods.map((method) => curveOf(method, values, of));
}

const methodsIn = (values: Values): string[] => [
  ...new Set([...values.keys()].flatMap((name) => /^(.*), seed \d+$/.exec(name)?.[1] ?? [])),
];

function curveOf(method: string, values: Values, of: string): Curve {
  const seeds = seedsOf(method, values);
  const own = seeds.map((name) => values.get(name)!);
  const over = (metric: string) => spreadOf(own.map((run) => run.get(metric)!));
  const last = seeds.map((name) => lastOf(name, values));
  const points = lossesOf(own[0]!).map(({ step }) => ({ step, ...over(`loss_at_${step}`) }));
  const sent = values.get(method)!.get("sent_per_step")!;
  const onLink = [...values].find(
    ([name, metrics]) => name.startsWith(`${method}, `) && metrics.has("sent_per_step") && !name.endsWith("steps"),
  );
  const bytesPerStep = sent || onLink?.[1].get("sent_per_step") || 0; // PyTorch's are counted on its link
  const searched = values.get(`${method}, search`) ?? new Map<string, number>();
  return {
    method,
    seeds: own.length,
    settings: { lr: own[0]!.get("lr"), warmup: own[0]!.get("warmup"), beta2: own[0]!.get("beta2") },
    atEdge: edges(searched, own[0]!.get("warmup")),
    last: spreadOf(last),
    ratio: spreadOf(last.map((loss, i) => loss / lastOf(seeds[i]!.replace(method, of), values))),
    points,
    bytesPerStep,
    bytesAfter(step) {
      const counts = countsOf(values.get(method)!, step);
      if (sent === 0 || counts.size === 0) return bytesPerStep * step;
      return [...counts].reduce((sum, [bytes, count]) => sum + bytes * count, 0);
    },
    secondsAfter: (rate, step) => secondsAfter(values, method, method, rate, step),
    toLoss(rate) {
      const own = secondsToLoss(method, values, rate);
      const peer = fastestPeer(values, rate);
      return own && { ...own, ratio: peer && peer.seconds / own.seconds };
    },
  };
}

/** The longest warm-up is an edge, also in records of searches that took a longer one for another. */
const edges = (searched: ReadonlyMap<string, number>, warmup: number | undefined) => [
  ...[...searched.keys()].flatMap((metric) => /^(\w+)_at_edge$/.exec(metric)?.[1] ?? []),
  ...(searched.size > 0 && warmup === longestWarmup ? ["warmup"] : []),
];

const seedsOf = (method: string, values: Values) =>
  [...values.keys()].filter((name) => name.startsWith(`${method}, seed `));
const lastOf = (name: string, values: Values) => values.get(name)?.get("validation_loss") ?? Number.NaN;

/**
 * The mean over the seeds of the time until the reference's loss with the same seed. In place of it, where it is less,
 * or where some seed does not get there, the time in a run of half or twice the steps.
 */
function secondsToLoss(method: string, values: Values, rate: string): Omit<TimeToLoss, "ratio"> | undefined {
  const seeds = seedsOf(method, values);
  const seconds = (run: string, seed: string) => {
    const target = tolerance * lastOf(seed.replace(method, reference), values);
    const reached = lossesOf(values.get(run)).find(({ step, loss }) => step > 0 && loss <= target)?.step;
    return secondsAfter(values, method, run === seed ? method : run, rate, reached);
  };
  const whole = seeds.map((seed) => seconds(seed, seed));
  const mean = whole.reduce<number>((sum, one) => sum + (one ?? Number.NaN), 0) / whole.length;
  const others = ["half", "twice"].map((length) => seconds(`${method}, ${length} the steps`, seeds[0]!));
  const found = [
    { seconds: mean, oneSeed: false },
    ...others.map((one) => ({ seconds: one ?? Number.NaN, oneSeed: true })),
  ].filter((one) => Number.isFinite(one.seconds));
  return found.toSorted((a, b) => a.seconds - b.seconds)[0];
}

/** PyTorch's side that has the reference's loss first. */
export function fastestPeer(values: Values, rate: string): { method: string; seconds: number } | undefined {
  const times = methodsIn(values)
    .filter(isPyTorchs)
    .flatMap((method) => {
      const found = secondsToLoss(method, values, rate);
      return found ? [{ method, seconds: found.seconds }] : [];
    });
  return times.toSorted((a, b) => a.seconds - b.seconds)[0];
}

/** Seconds after so many steps of a run of a method. */
function secondsAfter(
  values: Values,
  method: string,
  run: string,
  rate: string,
  step: number | undefined,
): number | undefined {
  const times = numbered(values.get(`${method}, ${rate}`), /^ms_of_(\d+)$/);
  if (times.size === 0 || step === undefined) return undefined;
  const counts = countsOf(values.get(run), step);
  return counts.size === 0 ? undefined : secondsOf(counts, times);
}

/** How many steps of each kind, by their bytes, there were until a step. */
const countsOf = (metrics: ReadonlyMap<string, number> | undefined, step: number) =>
  numbered(metrics, new RegExp(`^steps_of_(\\d+)_until_${step}$`));

/** The values of metrics by the number in their names. */
function numbered(metrics: ReadonlyMap<string, number> | undefined, name: RegExp): Map<number, number> {
  const found = [...(metrics ?? [])].flatMap(([metric, value]) => {
    const number = name.exec(metric)?.[1];
    return number === undefined ? [] : [[Number(number), value] as const];
  });
  return new Map(found);
}

const lossesOf = (metrics: ReadonlyMap<string, number> | undefined) =>
  [...numbered(metrics, /^loss_at_(\d+)$/)].map(([step, loss]) => ({ step, loss }));

/** "2.167 (2.100 to 2.200)"; of one seed "2.167". */
export function spreadText({ mean, least, most }: Spread, seeds: number): string {
  if (Number.isNaN(mean)) return "–";
  return seeds === 1 ? mean.toFixed(3) : `${mean.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})`;
}

/** "3 seeds"; methods that were not measured with all seeds show in it. */
export function seedsText(curves: readonly Curve[]): string {
  const [least, most] = [Math.min(...curves.map(({ seeds }) => seeds)), Math.max(...curves.map(({ seeds }) => seeds))];
  return `${least === most ? "" : `${least} to `}${most} ${most === 1 ? "seed" : "seeds"}`;
}
