/**
 * A dataset of numbered samples. Each epoch takes every sample once, in an order of its own; the order depends on the
 * seed only, so every number of ranks sees the same rows, and a run goes on at the exact sample.
 */
import { batchOf } from "./batch.ts";
import { DataError } from "./data-error.ts";
import type { Dataset, DatasetState, OpenOptions } from "./dataset.ts";
import { evenlySpread } from "./evenly-spread.ts";
import { permuted } from "./permutation.ts";
import type { Arrays, Row, Samples } from "./samples.ts";

export interface SampledState extends DatasetState {
  readonly rows: number; // of all ranks, so far
  readonly data: string; // the fingerprint
}

const stepsAhead = 2;
/** Sharded validation has so many batches where there are rows enough, so that ranks can share them. */
const leastBatches = 16;

export type Sharding = Pick<OpenOptions, "batchSize" | "seed" | "rank" | "ranks" | "accumulate">;

/** One rank's share of these samples. Throws `DataError`. */
export function sampledData(samples: Samples, given: Sharding): Dataset {
  const { facts } = samples;
  const { batchSize, seed, rank, ranks, accumulate = 1 } = given;
  if (rank >= ranks)
    throw new DataError(
      `data.rank is ${rank}, but with ${ranks} ranks the last one is ${ranks - 1}; set a rank from 0 to ${ranks - 1}.`,
    );
  let [step, rows, waited] = [0, 0, 0]; // waited: milliseconds
  let batchesOfStep = accumulate; // of the last step
  /** Steps that are read ahead, by the row with which they begin. */
  const ahead = new Map<number, Promise<Arrays[]>>();

  const rowsOfStep = () => batchesOfStep * ranks * batchSize;

  /** The rows of a rank's `batch`-th batch of the step that begins with row `first`. */
  const rowsOf = (first: number, batch: number, rank: number): Row[] => {
    const { trainingSamples } = facts;
    return Array.from({ length: batchSize }, (_, row) => {
      const position = first + (batch * ranks + rank) * batchSize + row;
      const epoch = Math.floor(position / trainingSamples);
      return { position, sample: permuted(position % trainingSamples, trainingSamples, seed, epoch) };
    });
  };

  /** The batches of the step that begins with row `first`, which may be under way already. */
  const read = (first: number): Promise<Arrays[]> => {
    const underWay = ahead.get(first);
    if (underWay) return underWay;
    const arrays = Promise.all(
      Array.from({ length: batchesOfStep }, (_, i) => samples.training(rowsOf(first, i, rank))),
    );
    arrays.catch(() => {}); // whoever takes the step gets the error
    ahead.set(first, arrays);
    return arrays;
  };

  /** What each of this rank's batches weighs in the step that begins with row `first`; every rank knows all rows. */
  const weightsOf = (first: number): { weight?: number; share?: number }[] => {
    const { targets } = facts;
    if (targets === undefined) return [];
    const weightOn = (rank: number, batch: number) =>
      rowsOf(first, batch, rank).reduce((sum, { sample }) => sum + targets.training[sample]!, 0);
    const batches = Array.from({ length: batchesOfStep }, (_, batch) => batch);
    const all = Array.from({ length: ranks }, (_, rank) => batches.map((batch) => weightOn(rank, batch)));
    const mean = all.flat().reduce((sum, each) => sum + each, 0) / (ranks * batchesOfStep);
    return all[rank]!.map((weight) => ({ weight, share: weight / mean }));
  };

  const readAhead = (): void => {
    if (facts.trainingSamples === 0) return;
    for (let i = 0; i < stepsAhead; i++) read(rows + i * rowsOfStep());
  };

  /** Batches of validation depend on nothing that is the ranks': products of other sizes have other last bits. */
  const validated = (windows: number, sharded: boolean): number[][] => {
    const all = evenlySpread(windows, facts.validationSamples);
    const size = sharded ? Math.min(batchSize, Math.ceil(all.length / leastBatches)) : batchSize;
    return Array.from({ length: Math.ceil(all.length / size) || 0 }, (_, i) => all.slice(i * size, (i + 1) * size));
  };

  readAhead();

  const close = async (): Promise<void> => {
    await Promise.allSettled(ahead.values()); // their files are in use
    ahead.clear();
    await samples.close?.();
  };
  return {
    ...facts,
    itemsPerBatch: batchSize * facts.itemsPerRow,
    get skipped() {
      return samples.skipped ?? [];
    },
    get waitedSeconds() {
      return waited / 1000;
    },

    /**
     * This rank's `count` batches of the next step; `last` is true in the last one. Rows are numbered through batches,
     * then ranks, then rows of a batch, so 1 rank × 4 batches, 4 ranks × 1 batch, and 1 rank with a batch four times as
     * large see the same rows.
     */
    async next(count = 1) {
      if (!Number.isSafeInteger(count) || count < 1)
        throw new DataError(`A step cannot have ${count} batches; give 1 or more (the accumulation count).`);
      const began = performance.now();
      if (count !== batchesOfStep) ahead.clear();
      batchesOfStep = count;
      const [arrays, weights] = [read(rows), weightsOf(rows)];
      ahead.delete(rows);
      step++;
      rows += rowsOfStep();
      readAhead();
      const batches = (await arrays).map((each, i) => batchOf(each, i === count - 1, weights[i]));
      waited += performance.now() - began;
      return batches;
    },

    /**
     * Batches of up to `windows` samples, evenly spread over the held-out part, the same at every call; with `sharded`
     * each of P ranks gets every P-th batch. The last batch may have fewer rows.
     */
    async *validation({ windows, sharded }) {
      const all = validated(windows, sharded);
      const mine = sharded ? all.filter((_, i) => i % ranks === rank) : all;
      for (const [i, batch] of mine.entries()) {
        const weight = facts.targets && batch.reduce((sum, sample) => sum + facts.targets!.validation[sample]!, 0);
        yield batchOf(await samples.validation(batch), i + 1 === mine.length, weight ? { weight } : {});
      }
    },

    validationBatches: (windows) => validated(windows, true).length,

    state: (): SampledState => ({ step, rows, seed, data: facts.fingerprint }),

    /**
     * Continues from `state`, on any number of ranks and with any batch size. Throws `DataError` if the rows would
     * differ.
     */
    restore(state: DatasetState): void {
      const saved = state as SampledState;
      if (saved.rows === undefined)
        throw new DataError(
          `The save is of an earlier version of terse, which drew the rows of ${facts.source} in another way; finish the run with that version, or begin one from its weights with --init-from.`,
        );
      if (![saved.step, saved.rows].every((n) => Number.isSafeInteger(n) && n >= 0))
        throw new DataError(
          `The saved data state has step ${saved.step} and rows ${saved.rows}, which are not both integers ≥ 0; resume from another checkpoint.`,
        );
      if (saved.data !== facts.fingerprint)
        throw new DataError(
          `${facts.source} is not the data of the saved run, or was read with other options or by an earlier version of terse; use the same data and options, or begin a run from its weights with --init-from.`,
        );
      if (saved.seed !== seed)
        throw new DataError(
          `The saved run has data.seed ${saved.seed}, and this run has ${seed}; set data.seed to ${saved.seed}, or start a new run.`,
        );
      ({ step, rows } = saved);
      ahead.clear();
      readAhead();
    },

    close,
    [Symbol.asyncDispose]: close,
  };
}
