import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { TextBatch } from "../batch.ts";
import { DataError } from "../data-error.ts";
import { type TextDataOptions, textData } from "./text-data.ts";

// These tests check the rows; batch.test.ts checks the tensors.
vi.mock("@terse/tensor", () => ({
  fromTypedArray: (array: BigInt64Array, shape: number[]) => ({ array, shape }),
}));
const rowsOf = (batch: TextBatch, side: "tokens" | "next" = "tokens"): string[] => {
  const { array, shape } = batch[side] as unknown as { array: BigInt64Array; shape: [number, number] };
  return Array.from({ length: shape[0] }, (_, row) => array.subarray(row * shape[1], (row + 1) * shape[1]).join(" "));
};

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-text-data-"));
  path = join(folder, "text.txt");
  writeFileSync(
    path,
    Uint8Array.from({ length: 10_000 }, (_, i) => (i * 2_654_435_761) >>> 24),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

const data = (options: Partial<TextDataOptions> = {}) =>
  textData({ path, blockSize: 16, batchSize: 2, seed: 5, validationFraction: 0.1, ...options });

/** The rows of all ranks for each step, in the order of the global batch. */
async function worldRows(ranks: number, batchSize: number, count: number, steps: number): Promise<string[][]> {
  const world = await Promise.all(Array.from({ length: ranks }, (_, rank) => data({ rank, ranks, batchSize })));
  const seen: string[][] = [];
  for (let step = 0; step < steps; step++) {
    const ofRank = await Promise.all(world.map((rank) => rank.next(count)));
    seen.push(Array.from({ length: count }, (_, i) => ofRank.flatMap((batches) => rowsOf(batches[i]!))).flat());
  }
  return seen;
}

describe("textData", () => {
  it("gives the same tokens for any split of a batch of 8 into ranks and accumulated batches", async () => {
    const whole = await worldRows(1, 8, 1, 3);
    expect(new Set(whole.flat()).size).toBe(24);
    for (const [ranks, batchSize, count] of [
      [8, 1, 1],
      [4, 2, 1],
      [2, 2, 2],
      [1, 4, 2],
      [1, 1, 8],
      [2, 1, 4],
    ] as const)
      expect(await worldRows(ranks, batchSize, count, 3)).toEqual(whole);
  });

  it("gives rows of the text, and the same rows one byte further on", async () => {
    const it = await data({ batchSize: 3 });
    const [starts] = [it.trainingStarts(0, 0)];
    const [batch] = await it.next();
    expect(rowsOf(batch!)).toEqual(starts.map((s) => it.trainBytes.subarray(s, s + 16).join(" ")));
    expect(rowsOf(batch!, "next")).toEqual(starts.map((s) => it.trainBytes.subarray(s + 1, s + 17).join(" ")));
  });

  it("sets last on the last batch of a step", async () => {
    expect((await (await data()).next(3)).map(({ last }) => last)).toEqual([false, false, true]);
  });

  it("gives other tokens for another seed", async () => {
    const [a, b] = [await data({ seed: 1 }), await data({ seed: 2 })];
    expect(rowsOf((await a.next())[0]!)).not.toEqual(rowsOf((await b.next())[0]!));
  });

  it("continues from its state with the same tokens, also on another number of ranks", async () => {
    const first = await data({ batchSize: 4 });
    for (let step = 0; step < 5; step++) await first.next(2);
    const state = JSON.parse(JSON.stringify(first.state()));
    expect(state.step).toBe(5);
    const then = (await first.next(2)).flatMap((batch) => rowsOf(batch));
    const resumed = await data({ batchSize: 4 });
    resumed.restore(state);
    expect((await resumed.next(2)).flatMap((batch) => rowsOf(batch))).toEqual(then);
    const onTwo = await Promise.all([0, 1].map((rank) => data({ batchSize: 4, rank, ranks: 2 })));
    for (const rank of onTwo) rank.restore(state);
    expect((await Promise.all(onTwo.map((rank) => rank.next()))).flatMap(([batch]) => rowsOf(batch!))).toEqual(then);
  });

  it("refuses a state with another text, split or seed, or with an invalid step", async () => {
    const state = (await data()).state();
    const other = join(folder, "other.txt");
    writeFileSync(other, "x".repeat(10_000));
    await expect(data({ path: other }).then((it) => it.restore(state))).rejects.toThrow(
      /other\.txt is not the text of the saved run, .*; use the same text and data\.validationFraction, or start a new run\.$/,
    );
    await expect(data({ validationFraction: 0.2 }).then((it) => it.restore(state))).rejects.toThrow(DataError);
    await expect(data({ seed: 6 }).then((it) => it.restore(state))).rejects.toThrow(
      "The saved run has data.seed 5, and this run has 6; set data.seed to 5, or start a new run.",
    );
    await expect(data().then((it) => it.restore({ ...state, step: -1 }))).rejects.toThrow(DataError);
  });

  it("validates on the same windows for any number of ranks; with `sharded` each window is on one rank", async () => {
    const alone = await data({ batchSize: 3 });
    const windows = (it: typeof alone, options = {}) => [...it.validation(options)].flatMap((batch) => rowsOf(batch));
    const all = windows(alone, { windows: 10 });
    expect(all.length).toBe(10);
    expect(windows(alone, { windows: 10 })).toEqual(all);
    const ranks = await Promise.all([0, 1, 2].map((rank) => data({ rank, ranks: 3, seed: rank })));
    for (const rank of ranks) expect(windows(rank, { windows: 10 })).toEqual(all);
    const shards = ranks.map((rank) => windows(rank, { windows: 10, sharded: true }));
    expect(shards.map((shard) => shard.length)).toEqual([4, 3, 3]);
    expect(all.map((_, i) => shards[i % 3]![Math.floor(i / 3)])).toEqual(all);
  });

  it("uses the last held-out byte as the last next token, and no byte beyond", async () => {
    const it = await data();
    const held = [...it.validationBytes].join(" ");
    const rows = [...it.validation()].flatMap((batch) => rowsOf(batch, "next"));
    expect(rows.length).toBe(62); // (1000 − 1) / 16
    for (const row of rows) expect(held).toContain(row);
    expect(held.endsWith(rows.at(-1)!)).toBe(true);
  });

  it("marks the last batch of a validation, which may have fewer rows", async () => {
    const batches = [...(await data({ batchSize: 4 })).validation({ windows: 10 })];
    expect(batches.map((batch) => rowsOf(batch).length)).toEqual([4, 4, 2]);
    expect(batches.map(({ last }) => last)).toEqual([false, false, true]);
  });

  it("gives no validation batches if nothing is held out", async () => {
    const it = await data({ validationFraction: 0 });
    expect([...it.validation()]).toEqual([]);
    expect(it.trainBytes.length).toBe(10_000);
  });

  it("never trains on a byte that it validates on", async () => {
    const it = await data();
    expect(it.trainBytes.byteOffset + it.trainBytes.length).toBeLessThanOrEqual(it.validationBytes.byteOffset);
    expect(it.trainBytes.length + it.validationBytes.length).toBe(10_000);
    const starts = Array.from({ length: 500 }, (_, step) => it.trainingStarts(step, 0)).flat();
    expect(Math.max(...starts) + 17).toBeLessThanOrEqual(it.trainBytes.length);
  });

  it("works with the shortest possible text: one block and the byte after it", async () => {
    const short = join(folder, "short.txt");
    writeFileSync(short, "12345");
    const it = await data({ path: short, blockSize: 4, validationFraction: 0 });
    expect(rowsOf((await it.next())[0]!)).toEqual(["49 50 51 52", "49 50 51 52"]);
    await expect(data({ path: short, blockSize: 5, validationFraction: 0 })).rejects.toThrow(
      /short\.txt leaves 5 bytes to train on, but one block needs 6 \(data\.blockSize 5 and the byte after it\); give more text or a smaller block\.$/,
    );
  });

  it("reports both lengths if the held-out part is shorter than a block", async () => {
    await expect(data({ validationFraction: 0.001 })).rejects.toThrow(
      /leaves 10 bytes to validate on, but one block needs 17 .*a larger data\.validationFraction \(0 for none\)\.$/,
    );
  });

  it.each([
    [{ blockSize: 0 }, "data.blockSize: expected an integer ≥ 1, got 0"],
    [{ validationFraction: 1 }, "data.validationFraction: expected a number ≥ 0 and < 1, got 1"],
    [{ seed: -1 }, "data.seed: expected an integer ≥ 0, got -1"],
    [{ rank: 2, ranks: 2 }, "data.rank is 2, but with 2 ranks the last one is 1; set a rank from 0 to 1."],
    [{ path: "" }, "The data path is empty; name a file or a folder of text."],
  ])("refuses %j", async (options, message) => {
    await expect(data(options as Partial<TextDataOptions>)).rejects.toThrow(message);
  });

  it("refuses a step of 0 batches", async () => {
    const it = await data();
    await expect(it.next(0)).rejects.toThrow("A step cannot have 0 batches; give 1 or more (the accumulation count).");
    expect(it.step).toBe(0);
  });
});
