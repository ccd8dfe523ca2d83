/** The curves of recorded runs: for each method its losses over the seeds, and the bytes and seconds that they took. */
import { byCase, type Measurement, type Values } from "../measurement.ts";
import { secondsOf } from "./times.ts";

/** Over the seeds. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

/**
 * What every method is compared with: the loss that it ends at, within a tolerance, and the time that PyTorch's DDP
 * takes for all its steps.
 */
export const [reference, baseline] = ["adamw", "pytorch-ddp"];
export const tolerance = 1.005;

export interface Curve {
  readonly method: string;
  readonly seeds: number;
  readonly lr: number | undefined; // where it was searched
  readonly last: Spread; // validation loss, nats per byte
  /** The last loss over that of the reference with the same seed. */
  readonly ratio: Spread;
  readonly points: readonly ({ readonly step: number } & Spread)[];
  readonly bytesPerStep: number; // sent by one worker, a mean over the steps
  /** What a worker has sent after so many steps. */
  bytesAfter(step: number): number;
  /** Seconds after so many steps on links of a rate; undefined where they were not measured. */
  secondsAfter(rate: string, step: number): number | undefined;
  /**
   * The baseline's time for all its steps ÷ the method's until it has the reference's loss; undefined where it never
   * has.
   */
  timeToLoss(rate: string): number | undefined;
  /** Whether that is in the run of twice the steps, which has one seed, because some seed did not have it before. */
  readonly inLongerRun: boolean;
}

/** `of`: the method whose losses the others are divided by. */
export function curvesOf(measurements: readonly Measurement[], of: string = reference): Curve[] {
  const values = byCase(measurements);
  const methods = [...new Set([...values.keys()].flatMap((name) => /^(.*), seed \d+$/.exec(name)?.[1] ?? []))];
  return methods.map((method) => curveOf(method, values, of));
}

function curveOf(method: string, values: Values, of: string): Curve {
  const seeds = [...values.keys()].filter((name) => name.startsWith(`${method}, seed `));
  const own = seeds.map((name) => values.get(name)!);
  const over = (metric: string) => spreadOf(own.map((run) => run.get(metric)!));
  const lastOf = (name: string) => values.get(name)?.get("validation_loss") ?? Number.NaN;
  const last = seeds.map(lastOf);
  const points = lossesOf(own[0]!).map(({ step }) => ({ step, ...over(`loss_at_${step}`) }));
  const sent = values.get(method)!.get("sent_per_step")!;
  const onLink = [...values].find(
    ([name, metrics]) => name.startsWith(`${method}, `) && metrics.has("sent_per_step") && !name.endsWith("steps"),
  );
  const bytesPerStep = sent || onLink?.[1].get("sent_per_step") || 0; // PyTorch's are counted on its link
  const reached = (name: string, seed: string) => {
    const target = tolerance * lastOf(seed.replace(method, reference));
    return lossesOf(values.get(name)).find(({ step, loss }) => step > 0 && loss <= target)?.step;
  };
  const steps = seeds.map((seed) => reached(seed, seed));
  const longer = `${method}, twice the steps`;
  const inLongerRun = steps.includes(undefined);
  return {
    method,
    seeds: own.length,
    lr: own[0]!.get("lr"),
    last: spreadOf(last),
    ratio: spreadOf(last.map((loss, i) => loss / lastOf(seeds[i]!.replace(method, of)))),
    points,
    bytesPerStep,
    bytesAfter(step) {
      const counts = countsOf(values.get(method)!, step);
      if (sent === 0 || counts.size === 0) return bytesPerStep * step;
      return [...counts].reduce((sum, [bytes, count]) => sum + bytes * count, 0);
    },
    secondsAfter: (rate, step) => secondsAfter(values, method, method, rate, step),
    inLongerRun,
    timeToLoss(rate) {
      const end = Math.max(...lossesOf(values.get(`${baseline}, seed 1`)).map(({ step }) => step));
      const base = secondsAfter(values, baseline, baseline, rate, end);
      const times = inLongerRun
        ? [secondsAfter(values, method, longer, rate, reached(longer, seeds[0]!))]
        : steps.map((step) => secondsAfter(values, method, method, rate, step));
      if (base === undefined || times.includes(undefined)) return undefined;
      return (base * times.length) / (times as number[]).reduce((sum, one) => sum + one, 0);
    },
  };
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

export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, least: Math.min(...values), most: Math.max(...values) };
}

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
