/** Rows that train: the small GPT of `bench convergence`, by settings that its search has found. */
import { recipe } from "../convergence/convergence.ts";
import { methods, settingsOwner } from "../convergence/methods.ts";
import { chosenIn, overridesOf } from "../convergence/settings.ts";
import { Trainers } from "../convergence/trainers.ts";
import { type MeasurableItem, type Reading, type Readings, reading } from "./item.ts";
import { recordedValues } from "./recorded.ts";

/** What one of a row's trainings changes. */
export interface Trial {
  /** Its name in the row's metrics. */
  readonly name: string;
  /** Of `bench convergence`: its changes, and the settings that its search has found. */
  readonly method: string;
  readonly changes?: readonly string[];
  readonly workers?: number; // 4 unless given
}

interface Plan {
  readonly row: string;
  readonly trials: readonly Trial[];
  readonly seeds: readonly number[];
  readonly steps?: number; // 400 unless given
  /** Steps between evaluations, for curves; at the end only unless given. */
  readonly every?: number;
}

/**
 * Yields "loss of NAME, seed K" for every trial and seed; with `every` also the losses before, "curve of NAME, seed K
 * after STEP".
 */
export async function* losses(plan: Plan): AsyncGenerator<Reading> {
  const { row, trials, seeds, steps = 400, every = steps } = plan;
  const runs = trials.flatMap((trial) =>
    seeds.map((seed) => ({
      name: `${trial.name}, seed ${seed}`,
      run: {
        recipe,
        overrides: [...overridesFor(trial, steps), `seed=${seed}`, `steps=${steps}`],
        workers: trial.workers ?? 4,
        every,
      },
    })),
  );
  await using trainers = await Trainers.open(`papers/${row}`);
  const trained = await Promise.all(runs.map(({ run }) => trainers.train(run)));
  for (const [i, { name }] of runs.entries()) {
    const { points } = trained[i]!;
    yield reading(`loss of ${name}`, points.at(-1)!.loss, "nats/byte");
    if (every < steps)
      for (const { step, loss } of points) yield reading(`curve of ${name} after ${step}`, loss, "nats/byte");
  }
}

/** The method's changes, its settings, and the trial's own changes. */
export function overridesFor({ method, changes = [] }: Trial, steps: number): string[] {
  const owner = settingsOwner(method);
  const found = recordedValues("convergence").get(`${owner}, seed 1`);
  const lr = methods[owner]!.lr as number;
  const chosen = chosenIn((metric) => found?.get(metric) ?? (metric === "lr" ? lr : undefined));
  const given = new Set(changes.map((word) => word.split("=")[0]));
  const own = [...methods[method]!.changes, ...overridesOf(chosen, steps)];
  return [...own.filter((word) => !given.has(word.split("=")[0])), ...changes];
}

interface Sweep extends Pick<MeasurableItem, "what" | "claim" | "rule"> {
  /** The loss of the first is divided by that of the second. */
  readonly methods: readonly [method: string, other: string];
  readonly values: readonly number[];
  /** What a trial of a method changes at a value. */
  readonly at: (value: number, method: string) => Pick<Trial, "changes" | "workers">;
  readonly steps?: number;
  /** The ratios, in the order of the values. */
  readonly holds: (ratios: readonly number[]) => boolean;
}

/** A row that trains two methods at several values of one thing, with the first seed. */
export function sweep({ methods: [method, other], values, at, steps, holds, ...described }: Sweep): MeasurableItem {
  const name = (of: string, value: number) => `${of} × ${value}`;
  const trials = values.flatMap((value) =>
    [method, other].map((of) => ({ name: name(of, value), method: of, ...at(value, of) })),
  );
  const ratios = (readings: Readings) =>
    values.map((value) => readings.ratio(name(method, value), name(other, value)).mean);
  return {
    ...described,
    measure: (row) => losses({ row, seeds: [1], trials, ...(steps !== undefined && { steps }) }),
    measured: (readings) =>
      ratios(readings)
        .map((ratio, i) => `${values[i]}: ${ratio.toFixed(3)}`)
        .join(", "),
    holds: (readings) => holds(ratios(readings)),
  };
}
