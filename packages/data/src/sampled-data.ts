/**
 * A dataset of numbered samples. Each epoch takes every sample once, in an order of its own; the order depends on the seed only, so every
 * number of ranks sees the same rows, and a run goes on at the exact sample.
 */
import { type Batch, batchOf } from "./batch.ts";
import { DataError } from "./data-error.ts";
import type { Dataset, DatasetState, OpenOptions } from "./dataset.ts";
import { evenlySpread } from "./evenly-spread.ts";
import type { Inventory } from "./inventory.ts";
import { permuted } from "./permutation.ts";
import type { Arrays, Row, Samples } from "./samples.ts";

export interface SampledState extends DatasetState {
  readonly rows: number; // of all ranks, so far
  readonly data: string; // the fingerprint
}

const stepsAhead = 2;

export type Sharding = Pick<OpenOptions, "batchSize" | "seed" | "rank" | "ranks" | "accumulate">;

export class SampledData implements Dataset {
  readonly #samples: Samples;
  readonly #given: Sharding;
  #step = 0;
  #rows = 0;
  #count: number; // batches of the last step
  #waited = 0; // milliseconds
  /** Steps that are read ahead, by the row with which they begin. */
  readonly #ahead = new Map<number, Promise<Arrays[]>>();

  constructor(samples: Samples, given: Sharding) {
    const { rank, ranks, accumulate = 1 } = given;
    if (rank >= ranks)
      throw new DataError(
        `data.rank is ${rank}, but with ${ranks} ranks the last one is ${ranks - 1}; set a rank from 0 to ${ranks - 1}.`,
      );
    this.#samples = samples;
    this.#given = given;
    this.#count = accumulate;
    this.#readAhead();
  }

  get source(): string {
    return this.#samples.facts.source;
  }

  get unit(): string {
    return this.#samples.facts.unit;
  }

  get trainingUnits(): number {
    return this.#samples.facts.trainingUnits;
  }

  get validationUnits(): number {
    return this.#samples.facts.validationUnits;
  }

  get item(): string {
    return this.#samples.facts.item;
  }

  get itemsPerBatch(): number {
    return this.#given.batchSize * this.#samples.facts.itemsPerRow;
  }

  get fingerprint(): string {
    return this.#samples.facts.fingerprint;
  }

  get classNames(): readonly string[] | undefined {
    return this.#samples.facts.classNames;
  }

  get prompt(): string | undefined {
    return this.#samples.facts.prompt;
  }

  get remarks(): readonly string[] {
    return this.#samples.facts.remarks ?? [];
  }

  get inventory(): Inventory | undefined {
    return this.#samples.facts.inventory;
  }

  get skipped(): readonly string[] {
    return this.#samples.skipped ?? [];
  }

  get mostSkipped(): number | undefined {
    return this.#samples.facts.mostSkipped;
  }

  get waitedSeconds(): number {
    return this.#waited / 1000;
  }

  /**
   * This rank's `count` batches of the next step; `last` is true in the last one. Rows are numbered through batches, then ranks, then rows
   * of a batch, so 1 rank × 4 batches, 4 ranks × 1 batch, and 1 rank with a batch four times as large see the same rows.
   */
  async next(count = 1): Promise<Batch[]> {
    if (!Number.isSafeInteger(count) || count < 1)
      throw new DataError(`A step cannot have ${count} batches; give 1 or more (the accumulation count).`);
    const began = performance.now();
    if (count !== this.#count) this.#ahead.clear();
    this.#count = count;
    const arrays = this.#read(this.#rows);
    this.#ahead.delete(this.#rows);
    this.#step++;
    this.#rows += this.#rowsOfStep;
    this.#readAhead();
    const batches = (await arrays).map((each, i) => batchOf(each, i === count - 1));
    this.#waited += performance.now() - began;
    return batches;
  }

  #readAhead(): void {
    for (let i = 0; i < stepsAhead; i++) this.#read(this.#rows + i * this.#rowsOfStep);
  }

  get #rowsOfStep(): number {
    return this.#count * this.#given.ranks * this.#given.batchSize;
  }

  /** The batches of the step that begins with row `first`, which may be under way already. */
  #read(first: number): Promise<Arrays[]> {
    const ahead = this.#ahead.get(first);
    if (ahead) return ahead;
    const arrays = Promise.all(
      Array.from({ length: this.#count }, (_, i) => this.#samples.training(this.#rowsOf(first, i))),
    );
    arrays.catch(() => {}); // whoever takes the step gets the error
    this.#ahead.set(first, arrays);
    return arrays;
  }

  /** The rows of this rank's `batch`-th batch of the step that begins with row `first`. */
  #rowsOf(first: number, batch: number): Row[] {
    const { batchSize, seed, rank, ranks } = this.#given;
    const { trainingSamples } = this.#samples.facts;
    return Array.from({ length: batchSize }, (_, row) => {
      const position = first + (batch * ranks + rank) * batchSize + row;
      const epoch = Math.floor(position / trainingSamples);
      return { position, sample: permuted(position % trainingSamples, trainingSamples, seed, epoch) };
    });
  }

  /**
   * Batches of up to `windows` samples, evenly spread over the held-out part, the same at every call; with `sharded` each of P ranks gets
   * every P-th. The last batch may have fewer rows.
   */
  async *validation({ windows = 64, sharded = false } = {}): AsyncGenerator<Batch> {
    const { batchSize, rank, ranks } = this.#given;
    const all = evenlySpread(windows, this.#samples.facts.validationSamples);
    const mine = sharded ? all.filter((_, i) => i % ranks === rank) : all;
    for (let i = 0; i < mine.length; i += batchSize)
      yield batchOf(await this.#samples.validation(mine.slice(i, i + batchSize)), i + batchSize >= mine.length);
  }

  state(): SampledState {
    return { step: this.#step, rows: this.#rows, seed: this.#given.seed, data: this.#samples.facts.fingerprint };
  }

  /** Continues from `state`, on any number of ranks and with any batch size. Throws `DataError` if the rows would differ. */
  restore(state: DatasetState): void {
    const { step, rows, seed, data } = state as SampledState;
    if (rows === undefined)
      throw new DataError(
        `The save is of an earlier version of terse, which drew the rows of ${this.source} in another way; finish the run with that version, or begin one from its weights with --init-from.`,
      );
    if (![step, rows].every((n) => Number.isSafeInteger(n) && n >= 0))
      throw new DataError(
        `The saved data state has step ${step} and rows ${rows}, which are not both integers ≥ 0; resume from another checkpoint.`,
      );
    if (data !== this.fingerprint)
      throw new DataError(
        `${this.source} is not the data of the saved run, or was read with other options or by an earlier version of terse; use the same data and options, or begin a run from its weights with --init-from.`,
      );
    if (seed !== this.#given.seed)
      throw new DataError(
        `The saved run has data.seed ${seed}, and this run has ${this.#given.seed}; set data.seed to ${seed}, or start a new run.`,
      );
    this.#step = step;
    this.#rows = rows;
    this.#ahead.clear();
    this.#readAhead();
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#ahead.values()); // their files are in use
    this.#ahead.clear();
    await this.#samples.close?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
