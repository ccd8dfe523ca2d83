/** Memory that its owner gives away while an operation uses it. */
import { type BufferLike, collectives, type NativeBuffer } from "@terse/native-collectives";
import { expect, it } from "vitest";
import type { Group } from "../../group.ts";
import { type EngineUnderTest, everywhere } from "./world.ts";

const length = 1 << 20; // so much memory returns to the system when it is freed

const ways: Record<string, (buffer: ArrayBuffer) => void> = {
  "transferred to a longer buffer": (buffer) => buffer.transfer(2 * buffer.byteLength),
  "transferred to a shorter buffer": (buffer) => buffer.transfer(4),
  "posted to a port that is closed": (buffer) => {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(buffer, [buffer]);
    port1.close();
    port2.close();
  },
};

/** Every operation on all ranks, on arrays that it makes. Whole numbers from 1 on are the sizes. */
const operations: Record<string, (group: Group, array: (length: number) => BufferLike) => Promise<unknown>> = {
  allReduce: (group, array) => group.allReduce(array(7)),
  reduceScatter: (group, array) => group.reduceScatter(eachRank(group, () => array(3))),
  allGather: (group, array) => group.allGather(eachRank(group, (r) => array(r + 1))),
  allToAll: (group, array) =>
    group.allToAll(
      eachRank(group, () => array(2)),
      eachRank(group, () => array(2)),
    ),
  broadcast: (group, array) => group.broadcast(array(5), 1),
  gather: (group, array) =>
    group.gather(
      array(2),
      0,
      eachRank(group, () => array(2)),
    ),
  scatter: (group, array) =>
    group.scatter(
      array(2),
      0,
      eachRank(group, () => array(2)),
    ),
  "send and recv": (group, array) =>
    group.rank === 0 ? group.send(array(4), 1) : group.rank === 1 ? group.recv(array(4), 0) : Promise.resolve(),
};

const eachRank = <T>({ size }: Group, make: (rank: number) => T): T[] =>
  Array.from({ length: size }, (_, r) => make(r));

/** Buffers that count who has retained them. */
class RetainableBuffers {
  retained = 0;
  ever = 0;

  make(elements: number): NativeBuffer {
    const array = new Float32Array(elements);
    const buffer = { pointer: collectives().addressOf(array), length: elements, dtype: "f32", device: "cpu" } as const;
    let gone = false;
    const retain = () => {
      if (gone) throw new Error("retained after the call has returned");
      this.retained++;
      this.ever++;
      return { ...buffer, array, release: () => this.retained-- };
    };
    queueMicrotask(() => {
      gone = true;
    });
    return Object.defineProperty({ ...buffer, retain }, "pointer", {
      get: () => {
        if (gone) throw new Error("the pointer is read after the call has returned");
        return buffer.pointer;
      },
    });
  }
}

export function memoryUnderWay(engine: EngineUnderTest, n: number): void {
  it("refuses memory that is not there or could go away, and the group goes on", () =>
    engine.withWorld(n, async (groups) => {
      await everywhere(groups, async (group) => {
        const memory = { pointer: 4096n, length: 1, dtype: "f32", device: "cpu" } as const;
        for (const length of [-1, 0.5, 2 ** 53, 2 ** 50, Number.NaN, undefined as never])
          await expect(group.allReduce({ ...memory, length })).rejects.toThrow(
            `the buffer.length is ${length}, and must`,
          );
        for (const pointer of [0n, -4n, 4098n, 2n ** 64n])
          await expect(group.broadcast({ ...memory, pointer }, 0)).rejects.toThrow(
            `broadcast: the buffer.pointer is ${pointer}, and must be an address that is a multiple of 4`,
          );
        await expect(group.allReduce({ ...memory, device: undefined as never })).rejects.toThrow("device is undefined");
        const gone = new Float32Array(3);
        structuredClone(gone, { transfer: [gone.buffer] });
        await expect(group.allReduce(gone)).rejects.toThrow("allReduce: the buffer has lost its memory");
        const resizable = new Float32Array(new ArrayBuffer(12, { maxByteLength: 12 }));
        await expect(group.allReduce(resizable)).rejects.toThrow("is in an ArrayBuffer that can be resized");
        const growable = new Float32Array(new SharedArrayBuffer(12, { maxByteLength: 24 }));
        await group.allReduce(growable); // it can only grow, and stays where it is
        await group.barrier();
      });
    }));

  it.each(Object.entries(ways))("an array that is %s during an all-reduce: no other memory changes", (_, giveAway) =>
    engine.withWorld(n, async (groups) => {
      const xs = groups.map((_, rank) => new Float32Array(length).fill(rank + 1));
      const first = groups[0]!.allReduce(xs[0]!);
      giveAway(xs[0]!.buffer as ArrayBuffer);
      const bystanders = Array.from({ length: 8 }, () => new Float32Array(length));
      await Promise.all([first, ...groups.slice(1).map((group) => group.allReduce(xs[group.rank]!))]);
      for (const x of bystanders) expect(x.every((each) => each === 0)).toBe(true);
      expect(xs[1]!.every((each) => each === (n * (n + 1)) / 2)).toBe(true);
    }),
  );

  it("an array whose buffer is transferred during an all-reduce: the result is in the new buffer", () =>
    engine.withWorld(n, async (groups) => {
      const xs = groups.map((_, rank) => Float32Array.of(rank + 1));
      const first = groups[0]!.allReduce(xs[0]!);
      const moved = new Float32Array((xs[0]!.buffer as ArrayBuffer).transfer());
      await Promise.all([first, ...groups.slice(1).map((group) => group.allReduce(xs[group.rank]!))]);
      expect([...moved]).toEqual([(n * (n + 1)) / 2]);
    }));

  it("every operation retains its buffers from the call to its end", () =>
    engine.withWorld(n, async (groups) => {
      for (const [name, operate] of Object.entries(operations)) {
        const buffers = new RetainableBuffers();
        const calls = groups.map((group) => operate(group, (elements) => buffers.make(elements)));
        expect([name, buffers.retained]).toEqual([name, buffers.ever]);
        expect(buffers.ever).toBeGreaterThanOrEqual(2);
        await Promise.all(calls);
        expect([name, buffers.retained]).toEqual([name, 0]);
      }
    }));

  it("buffers are released where the operation fails, and where the call is refused", () =>
    engine.withWorld(n, async (groups) => {
      const buffers = new RetainableBuffers();
      const calls = groups.slice(1).map((group) => group.allReduce(buffers.make(9)));
      expect(buffers.retained).toBe(n - 1);
      groups[0]!.abort("enough");
      await Promise.allSettled(calls);
      expect(buffers.retained).toBe(0);
      await everywhere(groups, async (group) => {
        await expect(group.allReduce(buffers.make(3))).rejects.toThrow("enough");
        expect(buffers.retained).toBe(0);
      });
    }));
}
