/** The curves of recorded runs: for each method its losses over the seeds. */
import { byCase } from "../measurement.ts";
import type { RecordedLine } from "../recording.ts";

/** Over the seeds. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

export interface Curve {
  readonly method: string;
  readonly bytesPerStep: number; // sent by one worker
  readonly seeds: number;
  readonly last: Spread; // validation loss, nats per byte
  /** The last loss over that of `reference` with the same seed. */
  readonly ratio: Spread;
  readonly points: readonly ({ readonly step: number } & Spread)[];
}

export const reference = "lion, 32 bit";

export function curvesOf(lines: readonly RecordedLine[]): Curve[] {
  const seeds = [...Map.groupBy(lines, ({ setting }) => setting).values()].map(byCase);
  const all = [...new Set(seeds.flatMap((values) => [...values.keys()]))];
  return all.map((method) => {
    const own = seeds.filter((values) => values.has(method));
    const over = (metric: string) => spreadOf(own.map((values) => values.get(method)!.get(metric)!));
    const steps = [...own[0]!.get(method)!.keys()].flatMap((metric) => /^loss_at_(\d+)$/.exec(metric)?.slice(1) ?? []);
    const lastOf = (values: (typeof own)[number], name: string) =>
      values.get(name)?.get("validation_loss") ?? Number.NaN;
    return {
      method,
      bytesPerStep: own[0]!.get(method)!.get("sent_per_step")!,
      seeds: own.length,
      last: over("validation_loss"),
      ratio: spreadOf(own.map((values) => lastOf(values, method) / lastOf(values, reference))),
      points: steps.map((step) => ({ step: Number(step), ...over(`loss_at_${step}`) })),
    };
  });
}

const spreadOf = (values: readonly number[]): Spread => ({
  mean: values.reduce((sum, value) => sum + value, 0) / values.length,
  least: Math.min(...values),
  most: Math.max(...values),
});

/** "3 seeds"; methods that have not been recorded with all seeds say so. */
export function seedsText(curves: readonly Curve[]): string {
  const [least, most] = [Math.min(...curves.map(({ seeds }) => seeds)), Math.max(...curves.map(({ seeds }) => seeds))];
  return `${least === most ? "" : `${least} to `}${most} ${most === 1 ? "seed" : "seeds"}`;
}
