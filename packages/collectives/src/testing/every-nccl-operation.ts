/** For tests on a GPU and on the fake one: every kind of operation, and its expected results. */
import { deepStrictEqual, ok } from "node:assert";
import { DeviceBuffer } from "../engines/device-buffer.ts";
import type { Group } from "../group.ts";

/** Runs every kind of operation on DeviceBuffers. All ranks call it. Throws where a result is wrong. */
export async function everyOperation(group: Group): Promise<void> {
  const { rank, size: n } = group;
  const buffers: DeviceBuffer[] = [];
  const device = async (from: Int32Array | Float32Array) => {
    const memory = new DeviceBuffer(group, from.length, from instanceof Int32Array ? "i32" : "f32");
    buffers.push(memory);
    await memory.write(from);
    return memory;
  };
  const numbers = async (memory: DeviceBuffer) => {
    const to = new Int32Array(memory.length);
    await memory.read(to);
    return [...to];
  };
  // One buffer cut into n parts of 3 elements: in rank order, or backwards so that a part's successor does not follow
  // it in memory.
  const parts = (memory: DeviceBuffer, backwards = false) =>
    Array.from({ length: n }, (_, r) => ({
      pointer: memory.pointer + 12n * BigInt(backwards ? n - 1 - r : r),
      length: 3,
      dtype: "i32" as const,
      device: memory.device,
    }));
  const each = (f: (r: number, i: number) => number) =>
    Int32Array.from({ length: 3 * n }, (_, at) => f(Math.floor(at / 3), at % 3));
  const ranks = Array.from({ length: n }, (_, each) => each);
  const total = (f: (rank: number) => number) => ranks.reduce((sum, each) => sum + f(each), 0);

  const x = await device(each((r, i) => 100 * r + 10 * rank + i));
  await group.allReduce(x);
  deepStrictEqual(await numbers(x), [...each((r, i) => total((other) => 100 * r + 10 * other + i))]);

  for (const backwards of [false, true]) {
    const at = (r: number) => (backwards ? n - 1 - r : r);
    const scattered = await device(each((place, i) => 100 * at(place) + 10 * rank + i));
    await group.reduceScatter(parts(scattered, backwards));
    const mine = (await numbers(scattered)).slice(3 * at(rank), 3 * at(rank) + 3);
    deepStrictEqual(
      mine,
      [0, 1, 2].map((i) => total((other) => 100 * rank + 10 * other + i)),
    );

    const gathered = await device(each((place, i) => (at(place) === rank ? 10 * rank + i : -1)));
    await group.allGather(parts(gathered, backwards));
    deepStrictEqual(await numbers(gathered), [...each((place, i) => 10 * at(place) + i)]);

    for (const even of [false, true]) {
      const out = await device(each((place, i) => 100 * rank + 10 * at(place) + i));
      const into = await device(each(() => 0));
      const notes = await group.allToAll(parts(out, backwards), parts(into, backwards), { note: rank + 1, even });
      deepStrictEqual(
        notes,
        ranks.map((r) => r + 1),
      );
      deepStrictEqual(await numbers(into), [...each((place, i) => 100 * at(place) + 10 * rank + i)]);
    }
  }

  // Parts of unequal lengths take other NCCL calls.
  const uneven = ranks.map((r) => Int32Array.from({ length: r }, () => rank + 1));
  await group.reduceScatter(uneven);
  deepStrictEqual([...uneven[rank]!], Array(rank).fill(total((other) => other + 1)));
  await group.allGather(uneven);
  deepStrictEqual(
    uneven.map((part) => [...part]),
    ranks.map((r) => Array(r).fill(total((other) => other + 1))),
  );

  const broadcasted = await device(Int32Array.of(rank, 7));
  await group.broadcast(broadcasted, n - 1);
  deepStrictEqual(await numbers(broadcasted), [n - 1, 7]);

  const root = await device(each((r, i) => 10 * r + i));
  const scattered = new Int32Array(3);
  const spread = ranks.map((r) => Int32Array.of(r, 2 * r, 3 * r));
  await group.scatter(scattered, 0, rank === 0 ? spread : undefined);
  deepStrictEqual([...scattered], [rank, 2 * rank, 3 * rank]);
  const own = await device(Int32Array.of(rank, rank, rank));
  await group.gather(own, n - 1, rank === n - 1 ? parts(root) : undefined);
  if (rank === n - 1) deepStrictEqual(await numbers(root), [...each((r) => r)]);

  if (n > 1) {
    const received = await device(Int32Array.of(0, 0, 0));
    await Promise.all([group.recv(received, (rank + n - 1) % n), group.send(own, (rank + 1) % n)]);
    deepStrictEqual(await numbers(received), Array(3).fill((rank + n - 1) % n));
  }

  // Sums that round, and means: the same bits on all ranks.
  const rough = (r: number, i: number) => Math.fround(Math.sin(i * 12.9898 + r * 78.233) * 2 ** ((i + r) % 20));
  for (const op of ["sum", "mean"] as const) {
    const length = 10_007;
    const memory = await device(Float32Array.from({ length }, (_, i) => rough(rank, i)));
    await group.allReduce(memory, op);
    const results = ranks.map(() => new Float32Array(length));
    await memory.read(results[rank]!);
    await group.allGather(results);
    for (const result of results) deepStrictEqual(Buffer.compare(asBytes(result), asBytes(results[0]!)), 0);
    for (let i = 0; i < length; i++) {
      const exact = total((other) => rough(other, i)) / (op === "mean" ? n : 1);
      const size = total((other) => Math.abs(rough(other, i))) / (op === "mean" ? n : 1);
      ok(Math.abs(results[0]![i]! - exact) <= 2 * n * 2 ** -24 * size, `${op} of element ${i}`);
    }
  }

  // A group of all ranks in reverse order. Its memory is freed while it is registered.
  const inner = (await group.split(0, -rank))!;
  deepStrictEqual(inner.rank, n - 1 - rank);
  const shared = await device(Int32Array.of(rank, 1));
  await shared.register(inner).catch(({ message }) => ok(message.includes("cannot register memory"), message));
  await inner.allReduce(shared);
  deepStrictEqual(await numbers(shared), [total((other) => other), n]);
  shared.free();
  await inner.close();
  await group.barrier();
  for (const memory of buffers) memory.free();
}

const asBytes = (x: Float32Array) => new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
