/** One figure, table or theorem of a paper: what it claims, what is measured here, and by which rule it holds. */

import { type Spread, spreadOf } from "@terse/pictures/spread";
import type { Measurement } from "../measurement.ts";

/** A number of a row, before it has the row's name. */
export type Reading = Omit<Measurement, "case">;

/** The numbers of a row, as they were measured or recorded. */
export class Readings {
  readonly #values: ReadonlyMap<string, number>;

  constructor(values: ReadonlyMap<string, number>) {
    this.#values = values;
  }

  /** Throws where a metric was not measured. */
  of(metric: string): number {
    const value = this.#values.get(metric);
    if (value === undefined) throw new Error(`no ${metric} was measured: measure this row again`);
    return value;
  }

  /** The values of metrics that begin so, by the rest of their names. */
  all(prefix: string): [rest: string, value: number][] {
    return [...this.#values].flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    );
  }

  /** The losses of one method over those of another with the same seed. */
  ratio(method: string, other: string): Spread {
    const losses = this.all(`loss of ${method}, seed `);
    return spreadOf(losses.map(([seed, loss]) => loss / this.of(`loss of ${other}, seed ${seed}`)));
  }
}

interface Described {
  /** "Table 2" */
  readonly what: string;
  readonly claim: string;
}

export interface MeasurableItem extends Described {
  /** When the claim counts as seen. */
  readonly rule: string;
  /** The numbers of the row, which is named so. Throws where it rests on recorded lines that are not there. */
  measure(row: string): AsyncGenerator<Reading> | Generator<Reading>;
  /** What was measured, in a cell of the table. */
  measured(readings: Readings): string;
  holds(readings: Readings): boolean;
}

export interface OtherItem extends Described {
  /** Why it cannot be measured here. */
  readonly because: string;
}

/** By the settings of the suite: "lion-cub-table-2". */
export type Items = Readonly<Record<string, MeasurableItem | OtherItem>>;

export const isMeasurable = (item: MeasurableItem | OtherItem): item is MeasurableItem => "measure" in item;

export const reading = (metric: string, value: number, unit = ""): Reading => ({ metric, value, unit });

/** "0.98 (0.97 to 1.01)" */
export const ratioText = ({ mean, least, most }: Spread): string =>
  `${mean.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})`;

export const percentText = (share: number): string => `${(100 * share).toFixed(1)} %`;

export const isFalling = (values: readonly number[]): boolean =>
  values.every((value, i) => i === 0 || value < values[i - 1]!);
