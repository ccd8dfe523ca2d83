import type { Measurement } from "./measurement.ts";

export interface SuiteOptions {
  /** Keys with new values, for suites that train by a recipe: "optimizer.lr=3e-4". */
  readonly overrides: readonly string[];
}

/**
 * The measurements of a suite, by setting, in the order of the record; each setting can be measured and recorded alone.
 */
export type Suite = Readonly<Record<string, (options: SuiteOptions) => AsyncGenerator<Measurement>>>;
