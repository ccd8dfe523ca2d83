/** Groups that are split from a group. */
import { expect, it } from "vitest";
import { everywhere, type SharedWorld } from "./world.ts";

export function splitGroups(world: SharedWorld): void {
  const { n } = world;

  it("splits by color and key, and splits what it has split, and works in all world.groups", async () => {
    await everywhere(world.groups, async (group, rank) => {
      // Even ranks in reverse order, odd ones as they are.
      const inner = (await group.split(rank % 2, rank % 2 === 0 ? -rank : 0))!;
      const members = world.groups.map((each) => each.rank).filter((each) => each % 2 === rank % 2);
      if (rank % 2 === 0) members.reverse();
      expect([inner.rank, inner.size]).toEqual([members.indexOf(rank), members.length]);
      const x = Int32Array.of(rank);
      const parts = members.map((_, r) => (r === inner.rank ? Int32Array.of(rank) : new Int32Array(1)));
      await Promise.all([group.allReduce(x), inner.allGather(parts)]);
      expect(x[0]).toBe((n * (n - 1)) / 2);
      expect(parts.map(([part]) => part)).toEqual(members);
      // Splits the new group again: its first member, and the rest. All three groups are used at once.
      const innermost = (await inner.split(Math.min(inner.rank, 1)))!;
      const [y, z] = [Int32Array.of(rank), Int32Array.of(rank)];
      await Promise.all([group.allReduce(x, "max"), innermost.allReduce(y), inner.broadcast(z, 0)]);
      const rest = members.slice(1).reduce((sum, each) => sum + each, 0);
      expect([x[0], y[0], z[0]]).toEqual([(n * (n - 1)) / 2, inner.rank === 0 ? rank : rest, members[0]]);
      expect(innermost.size).toBe(inner.rank === 0 ? 1 : members.length - 1);
      await innermost.close();
      expect(await group.split(undefined)).toBeUndefined();
      await inner.close();
    });
  });
}
