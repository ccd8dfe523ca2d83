/** Batches of bytes for a language model. For one seed the tokens are the same on every machine and for any number of ranks. */
import { createHash } from "node:crypto";
import {
  type InputOf,
  nonNegativeInteger,
  type OutputOf,
  parseOptions,
  positiveInteger,
  text,
  unitInterval,
  v,
} from "@terse/options";
import { batchAt, type TextBatch } from "../batch.ts";
import { DataError } from "../data-error.ts";
import type { Dataset, DatasetState } from "../dataset.ts";
import { byteTokenizer } from "../tokenizers/byte-tokenizer.ts";
import { evenStarts, trainingStart } from "../windows.ts";
import { splitText } from "./split-text.ts";
import { textBytes } from "./text-bytes.ts";
import { installationRoot, typescriptDeclarations } from "./typescript-declarations.ts";

export const textDataOptions = v.object({
  /** A file, or a folder of text. Absent: the TypeScript declarations of the installed packages. */
  path: v.optional(v.string()),
  /** In a folder, read only names with one of these endings. */
  extensions: v.optional(v.array(text)),
  /** T: tokens per row */
  blockSize: positiveInteger,
  /** B: rows per batch on each rank */
  batchSize: positiveInteger,
  seed: v.optional(nonNegativeInteger, 0),
  rank: v.optional(nonNegativeInteger, 0),
  ranks: v.optional(positiveInteger, 1),
  /** The fraction of the text that is held out; 0 for none. */
  validationFraction: v.optional(unitInterval, 0.1),
});
export type TextDataOptions = InputOf<typeof textDataOptions>;

export interface TextDataState extends DatasetState {
  readonly text: string; // SHA-256 of the training and the held-out text
}

export class TextData implements Dataset {
  readonly vocabulary = byteTokenizer.vocabulary;
  readonly unit = "byte";
  readonly item = "token";
  readonly waitedSeconds = 0; // all is in memory
  readonly source: string; // the path or name of the text, for messages
  remarks: readonly string[] = [];
  readonly trainBytes: Uint8Array;
  readonly validationBytes: Uint8Array;
  readonly #options: OutputOf<typeof textDataOptions>;
  #step = 0;
  #fingerprint: string | undefined;

  constructor(bytes: Uint8Array, source: string, options: OutputOf<typeof textDataOptions>) {
    const { blockSize, validationFraction, rank, ranks } = options;
    if (rank >= ranks)
      throw new DataError(
        `data.rank is ${rank}, but with ${ranks} ranks the last one is ${ranks - 1}; set a rank from 0 to ${ranks - 1}.`,
      );
    const { train, validation } = splitText(bytes, validationFraction);
    const needed = blockSize + 1; // the last token of a row needs a next token
    if (train.length < needed)
      throw new DataError(
        `${source} leaves ${train.length} bytes to train on, but one block needs ${needed} (data.blockSize ${blockSize} and the byte after it); give more text or a smaller block.`,
      );
    if (validationFraction > 0 && validation.length < needed)
      throw new DataError(
        `${source} leaves ${validation.length} bytes to validate on, but one block needs ${needed} (data.blockSize ${blockSize} and the byte after it); give more text, a smaller block, or a larger data.validationFraction (0 for none).`,
      );
    this.source = source;
    this.trainBytes = train;
    this.validationBytes = validation;
    this.#options = options;
  }

  get trainingUnits(): number {
    return this.trainBytes.length;
  }

  get validationUnits(): number {
    return this.validationBytes.length;
  }

  get itemsPerBatch(): number {
    return this.#options.batchSize * this.#options.blockSize;
  }

  /** The first 24 bytes of the held-out text, or of the training text if nothing is held out. */
  get prompt(): string {
    const unseen = this.validationBytes.length > 0 ? this.validationBytes : this.trainBytes;
    return byteTokenizer.decode(unseen.subarray(0, 24));
  }

  /** The number of steps so far, which is the number of calls of `next`. */
  get step(): number {
    return this.#step;
  }

  /**
   * This rank's `count` batches of the next step; `last` is true in the last one. Rows are numbered through batches, then ranks, then rows
   * of a batch. So 1 rank × 4 batches, 4 ranks × 1 batch, and 1 rank with a batch four times as large see the same tokens.
   */
  async next(count = 1): Promise<TextBatch[]> {
    if (!Number.isSafeInteger(count) || count < 1)
      throw new DataError(`A step cannot have ${count} batches; give 1 or more (the accumulation count).`);
    const { blockSize } = this.#options;
    const batches = Array.from({ length: count }, (_, i) =>
      batchAt(this.trainBytes, this.trainingStarts(this.#step, i), blockSize, i === count - 1),
    );
    this.#step++;
    return batches;
  }

  /** The offsets in `trainBytes` at which the windows of one of this rank's batches start. */
  trainingStarts(step: number, batch: number): number[] {
    const { seed, blockSize, batchSize, rank, ranks } = this.#options;
    const starts = this.trainBytes.length - blockSize;
    const firstRow = (batch * ranks + rank) * batchSize;
    return Array.from({ length: batchSize }, (_, row) => trainingStart(seed, step, firstRow + row, starts));
  }

  /**
   * Batches of up to `windows` blocks, evenly spread over the held-out text, the same at every call. Every rank gets all of them; with
   * `sharded` each of P ranks gets every P-th, and the ranks' numbers may differ by one, so weight means by rows. The last batch may have
   * fewer rows.
   */
  *validation({ windows = 64, sharded = false } = {}): Generator<TextBatch> {
    const { blockSize, batchSize } = this.#options;
    const starts = this.validationStarts({ windows, sharded });
    for (let i = 0; i < starts.length; i += batchSize) {
      const end = i + batchSize;
      yield batchAt(this.validationBytes, starts.slice(i, end), blockSize, end >= starts.length);
    }
  }

  /** The offsets in `validationBytes` at which the windows of `validation` start. */
  validationStarts({ windows = 64, sharded = false } = {}): number[] {
    const { blockSize, rank, ranks } = this.#options;
    // Two blocks may share one byte: the last next token of a block is the first token of the following block.
    const all = evenStarts(windows, blockSize, this.validationBytes.length - 1);
    return sharded ? all.filter((_, i) => i % ranks === rank) : all;
  }

  get fingerprint(): string {
    this.#fingerprint ??= createHash("sha256")
      .update(`${this.trainBytes.length} ${this.validationBytes.length} `)
      .update(this.trainBytes)
      .update(this.validationBytes)
      .digest("hex");
    return this.#fingerprint;
  }

  state(): TextDataState {
    return { step: this.#step, seed: this.#options.seed, text: this.fingerprint };
  }

  /** Continues from `state`, on any number of ranks. Throws `DataError` if the tokens would differ from those of the saved run. */
  restore(state: TextDataState): void {
    const mine = this.state();
    if (!Number.isSafeInteger(state.step) || state.step < 0)
      throw new DataError(
        `The saved data state has step ${state.step}, which is not an integer ≥ 0; resume from another checkpoint.`,
      );
    if (state.text !== mine.text)
      throw new DataError(
        `${this.source} is not the text of the saved run, or another part of it is held out; use the same text and data.validationFraction, or start a new run.`,
      );
    if (state.seed !== mine.seed)
      throw new DataError(
        `The saved run has data.seed ${state.seed}, and this run has ${mine.seed}; set data.seed to ${state.seed}, or start a new run.`,
      );
    this.#step = state.step;
  }

  /** All is in memory. */
  async [Symbol.asyncDispose](): Promise<void> {}
}

/**
 * Reads the text and splits it into training and validation. Throws `OptionsError` for wrong options, and `DataError` for a text that
 * cannot be used.
 */
export async function textData(options: TextDataOptions): Promise<TextData> {
  const parsed = parseOptions(textDataOptions, options, "data");
  const { path, extensions } = parsed;
  if (path !== undefined) return new TextData(await textBytes(path, { extensions }), path, parsed);
  const root = installationRoot();
  return new TextData(await typescriptDeclarations(root), "the installed TypeScript declarations", parsed);
}
