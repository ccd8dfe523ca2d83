import type { Group } from "@terse/collectives";
import { afterEach, expect, it, vi } from "vitest";
import { PhaseClock } from "./phases.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

it("measures the phases of two chunks, and the wire phase that overlaps with them", async () => {
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock);
  const works = (milliseconds: number) => () => {
    clock += milliseconds;
  };
  const inner = { rank: 1, allToAll: async () => [7], allGather: async () => {} } as unknown as Group;
  const ends: (() => void)[] = [];
  for (const name of ["allToAll", "allGather"] as const)
    Object.assign(inner, {
      [name]: () =>
        new Promise((done) => {
          ends.push(() => done([7]));
        }),
    });
  const after = async (milliseconds: number, message: number) => {
    clock += milliseconds;
    ends[message]!();
    await new Promise(setImmediate);
  };

  const phases = new PhaseClock(inner);
  const { group } = phases;
  expect(group.rank).toBe(1);
  phases.encode(works(3)); // 0 … 3
  const first = group.allToAll([], []); // message 0
  phases.encode(works(4)); // 3 … 7
  const second = group.allToAll([], []); // message 1
  await after(10, 0); // 17
  expect(await first).toEqual([7]);
  await after(0, 1); // the second chunk's votes arrive before the first one's are counted
  works(2)(); // the first chunk's, 17 … 19
  const gathers = [group.allGather([])]; // message 2
  await second;
  works(1)(); // 19 … 20
  gathers.push(group.allGather([])); // message 3
  await after(5, 2);
  await after(6, 3); // 31
  await Promise.all(gathers);
  phases.decode(works(8)); // 31 … 39
  expect(phases.phases).toEqual({ encode: 7, vote: 3, decode: 8, wire: 26, total: 39 });
});
