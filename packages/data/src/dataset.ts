/** The interface of datasets: what the training loop calls, and what a recipe needs to open one. */
import type { v } from "@terse/options";
import type { Batch } from "./batch.ts";
import type { Inventory } from "./inventory.ts";
import type { SampleFacts, Samples } from "./samples.ts";

/** A run's position in its data. JSON, the same on every rank. */
export interface DatasetState {
  readonly step: number;
  readonly seed: number;
}

/** One rank's share of the data. */
export interface Dataset extends Omit<SampleFacts, "itemsPerRow">, AsyncDisposable {
  readonly itemsPerBatch: number;
  /** The samples that this rank could not read so far, and why; others take their places. */
  readonly skipped?: readonly string[];

  /** Seconds that `next` has taken so far: waiting for rows, and making tensors of them. */
  readonly waitedSeconds: number;

  /** This rank's `count` batches of the next step. */
  next(count?: number): Promise<Batch[]>;
  /**
   * Batches of up to `windows` rows, evenly spread over the held-out part. They are the same at every call, and on any
   * number of ranks. With `sharded` they may be smaller, and each of P ranks gets every P-th batch.
   */
  validation(options: { windows: number; sharded: boolean }): Iterable<Batch> | AsyncIterable<Batch>;
  /** How many batches `validation` has on all ranks together, where it is sharded. */
  validationBatches(windows: number): number;
  state(): DatasetState;
  /** Continues from `state`. Throws `DataError` if the batches would differ from those of the saved run. */
  restore(state: DatasetState): void;
  /** Closes the files, and ends the thread. */
  close(): Promise<void>;
}

/** The text before and after a piece of a longer text. A few thousand letters are enough. */
export interface TextContext {
  readonly before: string;
  readonly after: string;
}

/** Converts text to token ids and back. */
export interface Tokenizer {
  readonly vocabulary: number; // ids are 0 … vocabulary − 1
  /** The token between two documents. */
  readonly endOfText?: number | undefined;
  /** With a context, the tokens that begin in `text`, as a part of a longer one. */
  encode(text: string, context?: TextContext): Iterable<number> | Promise<Iterable<number>>;
  decode(ids: Iterable<number>): string | Promise<string>;
}

/** Properties of the data that a model must fit, known before the data is opened. */
export interface DataFacts {
  readonly vocabulary?: number; // number of different tokens
  readonly length?: number; // tokens per row, if the options set it
  readonly classes?: number; // labels are 0 … classes − 1
  readonly channels?: number; // of images
  readonly height?: number; // of images, in pixels
  readonly width?: number;
}

/** How a dataset is opened: for which rank of how many, and in which batches. */
export interface OpenOptions {
  readonly batchSize: number; // rows per batch on each rank
  readonly seed: number;
  readonly rank: number;
  readonly ranks: number;
  readonly length?: number; // tokens per row that the model takes
  readonly accumulate?: number; // batches of a step, 1 if absent: what is read ahead of the first one
  /** Read and augment on a thread of its own, where the dataset can; batches are the same. */
  readonly thread?: boolean;
  /** Everything is held out, but for what has the name of a training part: nothing is trained on. */
  readonly holdOutAll?: boolean;
  /** Hears now and then, in a few words, how far a long opening has come. */
  readonly progress?: (words: string) => void;
}

/** What opening samples needs. Ranks share the work of looking at the data; without them this one does all of it. */
export type SampleOptions = Pick<OpenOptions, "seed" | "length" | "progress" | "holdOutAll"> &
  Partial<Pick<OpenOptions, "rank" | "ranks">>;

/** Texts of files by their names. */
export type ProcessorFiles = Readonly<Record<string, string>>;

/** One entry of the registry `datasets`. The methods get options that its schema has checked. */
export interface DatasetEntry {
  /** Keys of a recipe's `data` section, besides `name` and `batchSize`. */
  readonly options: { readonly entries: v.ObjectEntries };
  /** Names of the tensors of its batches. */
  readonly fields: readonly string[];
  /**
   * The tokenizer of data that a model can continue; resolves to undefined where the options name none. Throws
   * `DataError`.
   */
  tokenizer?(options: object): Promise<Tokenizer | undefined>;
  /**
   * The files with which transformers prepares inputs as this data does: those of the tokenizer of a text, of the
   * processor of images; resolves to undefined where the options name no tokenizer. Throws `DataError`.
   */
  processorFiles?(options: object): Promise<ProcessorFiles | undefined>;
  facts(options: object): DataFacts;
  /**
   * The files that opening would find, judged by their names and first bytes. Resolves to undefined for data without
   * files. Throws `DataError`.
   */
  inventory?(options: object): Promise<Inventory | undefined>;
  open(options: object, given: OpenOptions): Promise<Dataset>;
}

/**
 * An entry whose dataset is made of numbered samples, which another thread can read. No module of theirs imports
 * tensors.
 */
export interface SampledEntry extends Omit<DatasetEntry, "open"> {
  samples(options: object, given: SampleOptions): Promise<Samples>;
}
