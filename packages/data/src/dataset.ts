/** What every dataset has: what the training loop asks of it, and what a recipe says to open it. */
import type { v } from "@terse/options";
import type { Batch } from "./batch.ts";

/** Where a run stands in its data; JSON, the same on every rank. */
export interface DatasetState {
  readonly step: number;
  readonly seed: number;
}

/** One rank's share of the data. */
export interface Dataset {
  /** Where the data is from, for people. */
  readonly source: string;
  /** What the two parts are counted in: "byte", "image". */
  readonly unit: string;
  readonly trainingUnits: number;
  readonly validationUnits: number; // 0: nothing is held out
  /** What training speed is counted in: "token", "image". */
  readonly item: string;
  readonly itemsPerBatch: number;
  /** SHA-256, as hexadecimal digits, of what must be the same on every rank. */
  readonly fingerprint: string;
  /** The beginning of the held-out text, for models that continue a text. */
  readonly prompt?: string;

  /** This rank's `count` batches of the next step. */
  next(count?: number): Promise<Batch[]>;
  /** Up to `windows` rows spread over the held-out part, the same at every call; with `sharded` only this rank's. */
  validation(options: { windows: number; sharded: boolean }): Iterable<Batch>;
  state(): DatasetState;
  /** Continues where `state` was taken. Throws `DataError` where the batches would differ. */
  restore(state: DatasetState): void;
}

/** Texts to token ids and back. */
export interface Tokenizer {
  readonly vocabulary: number; // ids are 0 … vocabulary − 1
  encode(text: string): Iterable<number>;
  decode(ids: Iterable<number>): string;
}

/** What a model must fit: known before the data is opened. */
export interface DataFacts {
  readonly vocabulary?: number; // of tokens
  readonly length?: number; // tokens a row, where the options say it
}

export interface OpenOptions {
  readonly batchSize: number; // rows a batch, on each rank
  readonly seed: number;
  readonly rank: number;
  readonly ranks: number;
  readonly length?: number; // tokens a row that the model takes
}

/** One entry of the registry `datasets`; `options` below are what its schema made of a recipe. */
export interface DatasetEntry {
  /** Keys of a recipe's `data` section, besides `name` and `batchSize`. */
  readonly options: { readonly entries: v.ObjectEntries };
  /** The tensors of its batches. */
  readonly fields: readonly string[];
  /** Of texts only. */
  readonly tokenizer?: Tokenizer;
  facts(options: object): DataFacts;
  open(options: object, given: OpenOptions): Promise<Dataset>;
}
