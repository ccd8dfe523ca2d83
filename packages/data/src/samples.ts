/** Numbered samples, of which batches are made: what each format of files, and each kind of row, implements. */
import type { Inventory } from "./inventory.ts";

/** One row to make. */
export interface Row {
  readonly sample: number; // 0 … count − 1
  /** The row's position in the run: what is random about it depends on the seed and this number only. */
  readonly position: number;
}

/** The tensors of a batch, by name. */
export type Arrays = Readonly<
  Record<string, { readonly data: BigInt64Array | Float32Array; readonly shape: readonly number[] }>
>;

/** The properties of samples that are known before any is read. */
export interface SampleFacts {
  /** The path or name of the data, for messages. */
  readonly source: string;
  readonly unit: string; // of the sizes of the two parts: "image", "token"
  readonly trainingUnits: number;
  readonly validationUnits: number;
  readonly item: string; // the unit of training speed
  readonly itemsPerRow: number;
  readonly trainingSamples: number; // 1 or more; 0 where everything is held out
  readonly validationSamples: number; // 0: nothing is held out
  /**
   * How many predictions the loss of each sample is a mean of, where samples have different numbers: then they weigh by
   * them.
   */
  readonly targets?: { readonly training: Uint32Array; readonly validation: Uint32Array } | undefined;
  /** Samples that may be impossible to read; 0 if absent. More of them end the run. */
  readonly mostSkipped?: number | undefined;
  /** SHA-256, in hexadecimal digits, of everything that the rows depend on. */
  readonly fingerprint: string;
  /** The names of the classes, in the order of their labels, where they have any. */
  readonly classNames?: readonly string[] | undefined;
  /** The beginning of the held-out text. */
  readonly prompt?: string | undefined;
  /** The tokens with which what follows the prompt ends: any of these. Absent where it goes on. */
  readonly ends?: readonly (readonly number[])[] | undefined;
  /** The files that were found. Absent where the data has none. */
  readonly inventory?: Inventory | undefined;
  /** What the user should know of how the data is read, a line each. */
  readonly remarks?: readonly string[] | undefined;
}

export interface Samples {
  readonly facts: SampleFacts;
  /** The samples that could not be read so far, and why, in that order; others take their places. */
  readonly skipped?: readonly string[];

  /** A batch of `rows` of the training part. Calls may overlap. Throws `DataError`. */
  training(rows: readonly Row[]): Promise<Arrays>;
  /** A batch of these samples of the held-out part, always the same. Throws `DataError`. */
  validation(samples: readonly number[]): Promise<Arrays>;
  /** Closes files. */
  close?(): Promise<void>;
}
