/** What the thread of a dataset and its owner send to each other. */
import type { SampleOptions } from "../dataset.ts";
import type { Arrays, Row, SampleFacts } from "../samples.ts";

/** What the thread opens. */
export interface ThreadData {
  readonly name: string;
  readonly options: object;
  readonly given: Omit<SampleOptions, "progress">;
}

export type Request = { readonly id: number } & (
  | { readonly training: readonly Row[] }
  | { readonly validation: readonly number[] }
);

/** `id` 0 answers the opening. Messages on its progress may come before the answer. */
export type Answer = { readonly id: number } & (
  | { readonly progress: string }
  | { readonly facts: SampleFacts; readonly skipped: readonly string[] }
  | { readonly arrays: Arrays; readonly skipped: readonly string[] }
  | { readonly problem: string; readonly ofData: boolean }
);
