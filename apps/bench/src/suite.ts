import type { Measurement } from "./measurement.ts";

/** The measurements of a suite, by setting, in the order of the record; each setting can be measured and recorded alone. */
export type Suite = Readonly<Record<string, () => AsyncGenerator<Measurement>>>;
