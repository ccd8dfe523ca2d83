/** What the thread of a dataset and its owner send to each other. */
import type { OpenOptions } from "../dataset.ts";
import type { Arrays, Row, SampleFacts } from "../samples.ts";

/** What the thread opens. */
export interface ThreadData {
  readonly name: string;
  readonly options: object;
  readonly given: Pick<OpenOptions, "seed" | "length">;
}

export type Request = { readonly id: number } & (
  | { readonly training: readonly Row[] }
  | { readonly validation: readonly number[] }
);

/** `id` 0 answers the opening. */
export type Answer = { readonly id: number } & (
  | { readonly facts: SampleFacts }
  | { readonly arrays: Arrays; readonly skipped: number }
  | { readonly problem: string; readonly ofData: boolean }
);
