/** What every dataset must do; a dataset's own test calls it. */

import type { Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import type { Batch } from "../batch.ts";
import { DataError } from "../data-error.ts";
import type { Dataset, OpenOptions } from "../dataset.ts";
import type { SampledState } from "../sampled-data.ts";

export type Open = (given: Pick<OpenOptions, "batchSize" | "seed" | "rank" | "ranks">) => Promise<Dataset>;

/** Each row of a batch as a text: the numbers of all its tensors. */
export async function rowsOf(batch: Batch, fields: readonly string[]): Promise<string[]> {
  const columns = await Promise.all(
    fields.map(async (field) => {
      const tensor = (batch as unknown as Record<string, Tensor>)[field]!;
      expect(tensor.shape[0], field).toBe(batch.rows);
      const values = (await tensor.toTypedArray()) as BigInt64Array;
      const each = values.length / batch.rows;
      return Array.from({ length: batch.rows }, (_, row) => values.subarray(row * each, (row + 1) * each).join());
    }),
  );
  return Array.from({ length: batch.rows }, (_, row) => columns.map((column) => column[row]!).join("|"));
}

/**
 * `samples`: of an epoch, 10 to 50, all different. `fields`: of its batches. `random`: rows of the same sample differ
 * between epochs.
 */
export function datasetContract(
  open: Open,
  { samples, fields, random = false }: { samples: number; fields: readonly string[]; random?: boolean },
): void {
  const given = { batchSize: 2, seed: 3, rank: 0, ranks: 1 };

  /** The rows of all ranks for each step, in the order of the global batch. */
  async function worldRows(ranks: number, batchSize: number, count: number, steps: number, from?: object) {
    const world = await Promise.all(
      Array.from({ length: ranks }, (_, rank) => open({ seed: 3, rank, ranks, batchSize })),
    );
    const seen: string[] = [];
    if (from) for (const data of world) data.restore(from as never);
    for (let step = 0; step < steps; step++) {
      const ofRank = await Promise.all(world.map((data) => data.next(count)));
      for (let i = 0; i < count; i++) for (const batches of ofRank) seen.push(...(await rowsOf(batches[i]!, fields)));
    }
    for (const data of world) await data[Symbol.asyncDispose]();
    return { rows: seen, state: JSON.parse(JSON.stringify(world[0]!.state())) };
  }

  describe("as every dataset", () => {
    it("gives the same rows for any split of a batch of 8 into ranks and accumulated batches", async () => {
      const { rows } = await worldRows(1, 8, 1, 2);
      for (const [ranks, batchSize, count] of [
        [8, 1, 1],
        [2, 2, 2],
        [1, 1, 8],
        [4, 2, 1],
      ] as const)
        expect((await worldRows(ranks, batchSize, count, 2)).rows).toEqual(rows);
    });

    it("takes every sample once in each epoch, on no two ranks, in another order the next time", async () => {
      const { rows } = await worldRows(2, 1, 1, samples);
      const [first, second] = [rows.slice(0, samples), rows.slice(samples, 2 * samples)];
      expect(new Set(first).size).toBe(samples);
      expect(new Set(second).size).toBe(samples);
      expect(second).not.toEqual(first);
      if (!random) expect(second.toSorted()).toEqual(first.toSorted());
    });

    it("goes on at the exact sample, also on another number of ranks and with another batch size", async () => {
      const { rows } = await worldRows(1, 8, 1, 4);
      const { state } = await worldRows(2, 4, 1, 2);
      expect(state.step).toBe(2);
      for (const [ranks, batchSize] of [
        [1, 8],
        [4, 1],
        [2, 2],
      ] as const)
        expect((await worldRows(ranks, batchSize, 1, 16 / (ranks * batchSize), state)).rows).toEqual(rows.slice(16));
    });

    it("gives other rows for another seed", async () => {
      const [a, b] = [await open(given), await open({ ...given, seed: 4 })];
      const rows = async (data: Dataset) => rowsOf((await data.next())[0]!, fields);
      expect(await rows(a)).not.toEqual(await rows(b));
      for (const data of [a, b]) await data[Symbol.asyncDispose]();
    });

    it("validates on the same rows at every call and on any number of ranks; with `sharded` each batch is on one rank", async () => {
      let windows = 10;
      const validated = async (rank: number, ranks: number, sharded: boolean) => {
        const data = await open({ batchSize: 3, seed: rank, rank, ranks });
        const batches: string[][] = [];
        const lasts: boolean[] = [];
        for (let again = 0; again < 2; again++) {
          batches.length = lasts.length = 0;
          for await (using batch of data.validation({ windows, sharded })) {
            batches.push(await rowsOf(batch, fields));
            lasts.push(batch.last);
          }
        }
        expect(lasts).toEqual(lasts.map((_, i) => i === lasts.length - 1));
        if (sharded && ranks === 1) expect(data.validationBatches(windows)).toBe(batches.length);
        await data[Symbol.asyncDispose]();
        return batches;
      };
      for (windows of [10, 40]) {
        const all = await validated(0, 1, false);
        expect(all.flat().length).toBeGreaterThan(2);
        expect(all.flat().length).toBeLessThanOrEqual(windows);
        expect(Math.max(...all.map(({ length }) => length))).toBeLessThanOrEqual(3);
        expect(await validated(1, 3, false)).toEqual(all);
        const alone = await validated(0, 1, true);
        expect(alone.flat()).toEqual(all.flat());
        const shards = await Promise.all([0, 1, 2].map((rank) => validated(rank, 3, true)));
        expect(alone.map((_, i) => shards[i % 3]![Math.floor(i / 3)])).toEqual(alone);
        expect(shards.flat().length).toBe(alone.length);
      }
    });

    it("refuses a state of other data, of another seed, and one with impossible numbers", async () => {
      const data = await open(given);
      const state = data.state() as SampledState;
      const refused = (other: object) => expect(() => data.restore({ ...state, ...other })).toThrow(DataError);
      refused({ data: "0".repeat(64) });
      refused({ seed: 9 });
      refused({ step: -1 });
      refused({ rows: 0.5 });
      expect(data.fingerprint).toMatch(/^[0-9a-f]{64}$/);
      await data[Symbol.asyncDispose]();
    });
  });
}
