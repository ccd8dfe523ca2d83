import type { Measurement } from "./measurement.ts";

/** What a suite measures, by settings in the order in which they are recorded: each can be measured, and recorded, alone. */
export type Suite = Readonly<Record<string, () => AsyncGenerator<Measurement>>>;
