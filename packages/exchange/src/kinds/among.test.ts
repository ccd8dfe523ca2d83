import type { Group } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Exchange, openExchange, StepRefusedError } from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { type AmongKind, amongCost } from "./among.ts";

const value = (rank: number, i: number) => 60 * (((i * 7 + rank * 11) % 9) - 4);
const vector = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => value(rank, i));

/** Meshes of ranks, row by row: the axis of a rank's row, and that of its column. */
const meshes = [
  [1, 1],
  [1, 3],
  [2, 2],
  [2, 3],
  [4, 1],
] as const;
const rowOf = (rank: number, [, columns]: readonly [number, number]) =>
  Array.from({ length: columns }, (_, i) => Math.floor(rank / columns) * columns + i);
const columnOf = (rank: number, [rows, columns]: readonly [number, number]) =>
  Array.from({ length: rows }, (_, i) => i * columns + (rank % columns));

const run: Record<AmongKind, (exchange: Exchange, x: Float32Array, members: readonly number[]) => Promise<unknown>> = {
  "mean among": (exchange, x, members) => exchange.among(members).mean(x),
  "reduce among": (exchange, x, members) =>
    exchange.among(members).reduce(x, new Float32Array(x.length / members.length)),
  "gather among": (exchange, x, members) =>
    exchange.among(members).gather(x.subarray(0, x.length / members.length), x.slice()),
};

describe.each(meshes)("exchanges along the axes of a mesh of %i × %i ranks", (...mesh) => {
  const ranks = mesh[0] * mesh[1];

  it.each([
    ["row", rowOf],
    ["column", columnOf],
  ] as const)("reach the ranks of a %s alone", async (_, axis) => {
    const shard = 5;
    await onRanks(ranks, async (group) => {
      const members = axis(group.rank, mesh);
      const along = openExchange(group).among(members);
      const mean = (i: number) => members.reduce((sum, r) => sum + value(r, i), 0) / members.length;

      const x = vector(group.rank, 12);
      await along.mean(x);
      expect([...x]).toEqual([...x.keys()].map(mean).map(Math.fround));

      const place = members.indexOf(group.rank) * shard;
      const own = new Float32Array(shard);
      await along.reduce(vector(group.rank, shard * members.length), own);
      expect([...own]).toEqual([...own.keys()].map((i) => Math.fround(mean(place + i))));

      const whole = new Float32Array(shard * members.length);
      await along.gather(vector(group.rank, shard), whole);
      expect([...whole]).toEqual(members.flatMap((r) => [...vector(r, shard)]));
    });
  });

  it.each(Object.keys(run) as AmongKind[])(
    "have the bytes, messages and memory of their closed form: %s",
    async (kind) => {
      for (const axis of [rowOf, columnOf])
        for (const n of [0, 60, 6000])
          await onRanks(ranks, async (group: Group) => {
            const members = axis(group.rank, mesh);
            await run[kind](openExchange(group), vector(group.rank, n), members);
            const { bytes, messages } = group.sent();
            const counted = { bytes, messages, peakBytes: scratchOf(group).peak };
            expect(counted, `n = ${n}`).toEqual(amongCost(kind, n, ranks, group.rank, members));
            expect(scratchOf(group).live).toBe(0);
          });
    },
  );
});

describe("exchanges along the axes of a mesh", () => {
  const mesh = [2, 2] as const;

  it("of one round travel together, those of both axes one after the other", async () => {
    const sent = await onRanks(4, async (group) => {
      const exchange = openExchange(group);
      const [row, column] = [exchange.among(rowOf(group.rank, mesh)), exchange.among(columnOf(group.rank, mesh))];
      const xs = [3, 8, 1].map((n) => vector(group.rank, n));
      const ys = [4, 2].map((n) => vector(group.rank, n));
      await Promise.all([...xs.map((x) => row.mean(x)), ...ys.map((y) => column.mean(y))]);
      expect(xs[1]![7]).toBe((value(rowOf(group.rank, mesh)[0]!, 7) + value(rowOf(group.rank, mesh)[1]!, 7)) / 2);
      expect(ys[0]![3]).toBe((value(columnOf(group.rank, mesh)[0]!, 3) + value(columnOf(group.rank, mesh)[1]!, 3)) / 2);
      return group.sent().messages;
    });
    expect(sent).toEqual([12, 12, 12, 12]); // 2 (P − 1) for each axis
  });

  it.each(Object.keys(run) as AmongKind[])("are refused on every rank, also outside of the group: %s", async (kind) => {
    for (const by of ["loss", "NaN"] as const) {
      if (by === "NaN" && kind === "gather among") continue; // it takes what a rank has checked before
      const outcomes = await onRanks(4, async (group) => {
        const exchange = openExchange(group);
        const x = vector(group.rank, 8);
        if (by === "NaN" && group.rank === 1) x[3] = Number.NaN;
        if (by === "loss" && group.rank === 1) exchange.refuse("the loss is not finite");
        return run[kind](exchange, x, rowOf(group.rank, mesh)).catch((error: unknown) => error);
      });
      for (const error of outcomes) {
        expect(error).toBeInstanceOf(StepRefusedError);
        expect(String(error)).toContain(
          `rank 1 refuses the step: the ${by === "loss" ? "loss" : "gradient"} is not finite`,
        );
      }
    }
  });

  it("name members that are no group of this rank, and lengths that are no shards, before anything is sent", async () => {
    await onRanks(2, async (group) => {
      const exchange = openExchange(group);
      for (const members of [[1 - group.rank], [1, 0], [0, 2], []])
        expect(() => exchange.among(members)).toThrow(
          `among: [${members.join(", ")}] is no group of rank ${group.rank}`,
        );
      const along = exchange.among([0, 1]);
      await expect(along.reduce(new Float32Array(5), new Float32Array(2))).rejects.toThrow(
        "x has 5 floats, and must have 4, 2 shards of 2",
      );
      await expect(along.gather(new Float32Array(2), new Float32Array(5))).rejects.toThrow(
        "into has 5 floats, and must have 4",
      );
      expect(group.sent().messages).toBe(0);
    });
  });
});
