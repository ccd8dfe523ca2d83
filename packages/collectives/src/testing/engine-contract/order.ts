/** Operations that are called one after the other without an await, and the barrier. */
import { expect, it } from "vitest";
import { everywhere, type SharedWorld } from "./world.ts";

export function order(world: SharedWorld): void {
  const { n } = world;
  const { volumes } = world.engine.traits;

  it("ends a barrier on no rank before all ranks are in it", async () => {
    let inside = 0;
    await world.counted(
      async (group, rank) => {
        await new Promise((resolve) => setTimeout(resolve, 5 * rank));
        inside++;
        await group.barrier();
        expect(inside).toBe(n);
      },
      () => volumes.barrier(n),
    );
  });

  it("runs operations in the order of the calls, without an await between them", async () => {
    await everywhere(world.groups, async (group, rank) => {
      const x = Float64Array.from({ length: 3000 }, () => rank + 1);
      const settled: number[] = [];
      const calls = [
        group.allReduce(x), // n (n + 1) / 2
        group.allReduce(x, "max"), // the same
        group.broadcast(x, n - 1),
        group.allReduce(x), // n times that
        group.barrier(),
      ].map((call, k) => call.then(() => settled.push(k)));
      await Promise.all(calls);
      expect(settled).toEqual([0, 1, 2, 3, 4]);
      expect(x.every((each) => each === (n * n * (n + 1)) / 2)).toBe(true);
    });
  });

  it("keeps the data and notes of long operations apart", async () => {
    // An operation may start before the end of the one before has arrived, unless it needs its data.
    const many = () => Array.from({ length: n }, () => new Uint8Array(100_000));
    await everywhere(world.groups, async (group, rank) => {
      const [out, there, back, own, more] = [many(), many(), many(), many(), many()];
      for (const [r, part] of out.entries()) part.fill(1 + rank * n + r);
      own[rank]!.fill(rank + 1);
      const settled: number[] = [];
      const calls = [
        group.allToAll(out, there, { note: 5 }), // there[r] = 1 + r n + rank
        group.allToAll(there, back, { note: rank }), // returns the result of the first: back[r] = 1 + rank n + r
        group.allGather(back), // back[r] = 1 + r n + r
        group.allGather(own), // this and the next operation need no earlier result
        group.allToAll(out, more, { note: 7 }),
      ].map((call, k) =>
        call.then((notes) => {
          settled.push(k);
          return notes;
        }),
      );
      const notes = await Promise.all(calls);
      expect(settled).toEqual([0, 1, 2, 3, 4]);
      expect(notes.map((each) => each && [...each])).toEqual([
        world.groups.map(() => 5),
        world.groups.map((_, r) => r),
        undefined,
        undefined,
        world.groups.map(() => 7),
      ]);
      for (let r = 0; r < n; r++) {
        const got = [there, back, own, more].map((parts) => parts[r]!);
        const want = [1 + r * n + rank, 1 + r * n + r, r + 1, 1 + r * n + rank];
        for (const [k, part] of got.entries())
          expect(Buffer.compare(part, new Uint8Array(part.length).fill(want[k]!))).toBe(0);
      }
    });
  });
}
