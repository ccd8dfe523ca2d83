/** What the probes of a training see: the metrics of measured steps, as `./terse train` writes them. */
import { recipe } from "../convergence/convergence.ts";
import { Trainers } from "../convergence/trainers.ts";
import { overridesFor, type Trial } from "./trained.ts";

export interface Probed {
  readonly step: number;
  readonly of: {
    /** Throws where the line has no such number. */
    (key: string): number;
    list(key: string): readonly (number | null)[];
    texts(key: string): readonly string[];
    /** Name and number of each layer that has one. */
    byLayer(key: string): (readonly [name: string, value: number])[];
  };
}

interface Plan extends Omit<Trial, "name"> {
  readonly row: string;
  readonly steps: number;
  readonly at: readonly number[]; // steps taken
}

/** Trains once with the first seed, and yields what was measured after so many steps. */
export async function* probed({ row, steps, at, workers = 4, ...trial }: Plan): AsyncGenerator<Probed> {
  const overrides = [...overridesFor({ name: row, ...trial }, steps), "seed=1", `steps=${steps}`];
  await using trainers = await Trainers.open(`papers/${row}`);
  const run = await trainers.train({ recipe, overrides, workers, every: steps, probeAt: at });
  for (const { step, metrics } of run.probes!) {
    const value = <T>(key: string) => {
      const found = metrics[key];
      if (found === undefined) throw new Error(`nothing was measured as ${key} at step ${step}`);
      return found as T;
    };
    const number = (key: string) => value<number>(key);
    const list = (key: string) => value<readonly (number | null)[]>(key);
    const texts = (key: string) => value<readonly string[]>(key);
    const byLayer = (key: string) => {
      const values = list(key);
      return texts("layers/names").flatMap((name, i) => {
        const value = values[i];
        return value === null || value === undefined ? [] : [[name, value] as const];
      });
    };
    yield { step, of: Object.assign(number, { list, texts, byLayer }) };
  }
}
