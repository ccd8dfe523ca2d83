import { describe, expect, it } from "vitest";
import { packBestFit, packWrapped } from "./pack-rows.ts";
import { rowInMemory } from "./stored-row.ts";

/** Rows of these lengths, each of its own token. */
const rowsOf = (lengths: readonly number[]) =>
  lengths.map((length, row) =>
    rowInMemory({ ids: new Uint32Array(length).fill(row), learned: new Uint8Array(length).fill(1) }),
  );

const lengthsIn = (packed: ReturnType<typeof packBestFit>) =>
  packed.map((rows) => rows.map((row) => [row.read().ids[0]!, row.length]));

describe("rows", () => {
  it("are packed by falling length where the least room is enough, as the example of TRL's pack_dataset", () => {
    expect(lengthsIn(packBestFit(rowsOf([4, 2, 3, 1]), 4))).toEqual([
      [[0, 4]],
      [
        [2, 3],
        [3, 1],
      ],
      [[1, 2]],
    ]);
    expect(packBestFit([], 4)).toEqual([]);
  });

  it("are packed as a slow search for the best block packs them", () => {
    const rows = rowsOf(Array.from({ length: 300 }, (_, i) => 1 + ((i * 7919) % 61)));
    for (const block of [61, 64, 100, 257]) {
      const blocks: { rows: (typeof rows)[number][]; room: number; since: number }[] = [];
      for (const [turn, row] of rows.toSorted((a, b) => b.length - a.length).entries()) {
        const fitting = blocks.filter(({ room }) => room >= row.length);
        const best = fitting.sort((a, b) => a.room - b.room || a.since - b.since)[0];
        const into = best ?? { rows: [], room: block, since: turn };
        if (best === undefined) blocks.push(into);
        into.rows.push(row);
        into.room -= row.length;
        into.since = turn;
      }
      expect(lengthsIn(packBestFit(rows, block))).toEqual(lengthsIn(blocks.map((each) => each.rows)));
    }
  });

  it("are cut where a block is full, and lose nothing", () => {
    expect(lengthsIn(packWrapped(rowsOf([3, 0, 6, 1]), 4))).toEqual([
      [
        [0, 3],
        [2, 1],
      ],
      [[2, 4]],
      [
        [2, 1],
        [3, 1],
      ],
    ]);
  });
});
