/** Arguments of one rank that cannot be right. */
import { expect, it } from "vitest";
import { everywhere, type SharedWorld } from "./world.ts";

export function wrongArguments(world: SharedWorld): void {
  const { n } = world;

  it("refuses arguments that cannot be right, and the group goes on", async () => {
    await everywhere(world.groups, async (group, rank) => {
      const part = new Float32Array(2);
      const tooMany = Array.from({ length: n + 1 }, () => part);
      await expect(group.allGather(tooMany)).rejects.toThrow(
        `allGather: parts must have one entry per rank, so ${n}, and has ${n + 1}`,
      );
      await expect(group.reduceScatter([])).rejects.toThrow(RangeError);
      const flat = new Float32Array(n) as never; // as many elements as ranks
      await expect(group.allGather(flat)).rejects.toThrow(
        `allGather: parts must be an array with one buffer per rank, so ${n} of them`,
      );
      await expect(group.allToAll(flat, flat)).rejects.toThrow("allToAll: outgoing must be an array");
      await expect(group.broadcast(part, n)).rejects.toThrow(`broadcast: there is no rank ${n} among ${n}`);
      await expect(group.gather(part, n, [])).rejects.toThrow(`gather: there is no rank ${n} among ${n}`);
      if (rank === 0) {
        await expect(group.gather(part, 0)).rejects.toThrow("gather: rank 0 is the root and must give parts");
        const parts = world.groups.map(() => new Float32Array(3));
        await expect(group.gather(part, 0, parts)).rejects.toThrow(
          "gather: the root's memory has 2 elements, and parts[0], its own, has 3",
        );
        await expect(group.scatter(new Int32Array(3), 0, parts)).rejects.toThrow(
          "scatter: the memory is i32 and the parts are f32",
        );
      }
      await expect(group.send(part, rank)).rejects.toThrow(RangeError);
      await expect(group.allReduce([1, 2] as never)).rejects.toThrow(TypeError);
      const controller = new AbortController() as never; // its signal is meant
      const untouched = Float32Array.of(rank);
      for (const wrong of [
        group.allReduce(untouched, "sum", { signal: controller }),
        group.barrier({ signal: controller }),
      ])
        await expect(wrong).rejects.toThrow(/^(allReduce|barrier): signal must be an AbortSignal/);
      for (const wrong of [
        group.allReduce(untouched, "sum", { sginal: controller } as never),
        group.allGather([], AbortSignal.abort() as never),
        group.send(untouched, (rank + 1) % n, { tag: 1 } as never),
        group.barrier(5 as never),
      ])
        await expect(wrong).rejects.toThrow(
          /^(allReduce: there is no option sginal|allGather: there is no option \w+ \(known: signal\)|send: there is no option tag|barrier: options are an object)/,
        );
      expect(untouched[0]).toBe(rank);
      await expect(group.allReduce(new Uint32Array(1), "max")).rejects.toThrow("max of a Uint32Array is not supported");
      await expect(group.allReduce(part, "median" as never)).rejects.toThrow("no reduction is called median");
      const odd = { pointer: 0n, length: 0, dtype: "f8" as never, device: "cpu" };
      if (rank === 0) await expect(group.allReduce(odd)).rejects.toThrow("unknown dtype f8");
      const onDevice = { pointer: 4096n, length: 1, dtype: "f32", device: "cuda:77" } as const;
      await expect(group.allReduce(onDevice)).rejects.toThrow("the memory is on cuda:77");
      const mixed = world.groups.map(({ rank: r }) => (r === n - 1 ? new Float64Array(2) : part));
      if (n > 1) await expect(group.allGather(mixed)).rejects.toThrow("parts[0] is f32");
      await group.barrier();
    });
  });

  it("refuses memory that it writes and that is given twice, and takes what a rank keeps in its place", async () => {
    await everywhere(world.groups, async (group, rank) => {
      const flat = new Int32Array(2 * n);
      const parts = world.groups.map((_, r) => flat.subarray(2 * r, 2 * r + 2).fill(rank));
      const others = world.groups.map(() => new Int32Array(2));
      if (n > 1) {
        const same = world.groups.map(() => flat.subarray(0, 2));
        const shifted = world.groups.map((_, r) => flat.subarray(Math.max(2 * r - 1, 0), 2 * r + 2));
        const refused = async (call: Promise<unknown>, names: RegExp) => {
          await expect(call).rejects.toThrow(RangeError);
          await expect(call).rejects.toThrow(names);
        };
        await refused(
          group.allToAll(parts, parts),
          /^allToAll: (outgoing|incoming)\[\d+\] and .* share memory; give each/,
        );
        await refused(group.allToAll(others, same), /^allToAll: incoming\[0\] and incoming\[1\] share memory/);
        await refused(group.allGather(same), /^allGather: parts\[0\] and parts\[1\] share memory/);
        await refused(group.reduceScatter(shifted), /^reduceScatter: parts\[\d\] and parts\[\d\] share memory/);
        if (rank === 0) {
          await refused(group.gather(parts[0]!, 0, same), /^gather: parts\[0\] and parts\[1\] share memory/);
          await refused(group.scatter(parts[1]!, 0, parts), /^scatter: .*the buffer.* share memory/);
        }
        await group.barrier();
      }
      const incoming = parts.map((part, r) => (r === rank ? part : others[r]!));
      await group.allToAll(parts, incoming);
      expect(incoming.map(([first]) => first)).toEqual(world.groups.map((_, r) => r));
      await group.scatter(rank === 0 ? parts[0]! : others[0]!, 0, parts);
      await group.scatter(new Int32Array(2), 0, Array<Int32Array>(n).fill(parts[0]!)); // one that is only read
      await group.scatter(rank === 0 ? parts[0]! : others[0]!, 0, Array<Int32Array>(n).fill(parts[0]!));
      await group.gather(parts[rank]!, 0, parts);
      expect(parts.map(([first]) => first)).toEqual(world.groups.map((_, r) => (rank === 0 ? r : rank)));
    });
  });
}
