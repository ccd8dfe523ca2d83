/** What arrives where by the operations that only move data. */
import { expect, it } from "vitest";
import { bytesOf, filled, mebibyte, sample, type Type, types, type Values, value } from "./values.ts";
import { everywhere, type SharedWorld } from "./world.ts";

export function dataMovement(world: SharedWorld): void {
  const { n } = world;
  const { volumes } = world.engine.traits;

  it("moves every type by every operation that does not reduce", async () => {
    const root = n - 1;
    const own = (type: Type, r: number) => type.make([r, -r, 2].slice(0, r % 4)); // 0 to 3 elements
    for (const type of types) {
      const blank = (r: number) => type.make(own(type, r).read().fill(9));
      await everywhere(world.groups, async (group, rank) => {
        const everyone = (of: (type: Type, r: number) => Values) => world.groups.map((_, r) => of(type, r));
        const memories = (all: readonly Values[]) => all.map(({ memory }) => memory);
        const want = everyone(own).map((each) => each.read());
        const [gathered, collected, swapped] = [everyone(own), everyone(own), everyone((_, r) => blank(r))];
        world.groups.forEach((_, r) => {
          if (r !== rank) gathered[r] = blank(r);
          collected[r] = blank(r);
        });
        const outgoing = world.groups.map(() => own(type, rank));
        const [scattered, broadcasted] = [blank(rank), type.make(rank === root ? [1, -2, 0] : [9, 9, 9])];
        const calls: Promise<unknown>[] = [
          group.allGather(memories(gathered)),
          group.gather(own(type, rank).memory, root, memories(collected)),
          group.scatter(scattered.memory, root, memories(everyone(own))),
          group.allToAll(memories(outgoing), memories(swapped)),
          group.broadcast(broadcasted.memory, root),
        ];
        const received = blank((rank + n - 1) % n);
        if (n > 1)
          calls.push(
            group.send(own(type, rank).memory, (rank + 1) % n),
            group.recv(received.memory, (rank + n - 1) % n),
          );
        await Promise.all(calls);
        const kept = type.make([1, -2, 0]).read();
        expect(gathered.map((each) => each.read())).toEqual(want);
        if (rank === root) expect(collected.map((each) => each.read())).toEqual(want);
        expect(scattered.read()).toEqual(want[rank]);
        expect(swapped.map((each) => each.read())).toEqual(want);
        expect(broadcasted.read()).toEqual(kept);
        if (n > 1) expect(received.read()).toEqual(want[(rank + n - 1) % n]);
      });
    }
  });

  const shapes: [string, (r: number) => number][] = [
    ["small", (r) => (r === 0 ? 0 : 5 * r)],
    // A segment ± 1, and the payload that travels with its header ± 1
    ["large", (r) => (r === 0 ? 0 : r < 4 ? mebibyte - 2 + r : 8190 + r)],
    ["equal", () => 1000],
  ];

  it.each(shapes)("all-gathers %s parts", async (_, lengthOf) => {
    const lengths = world.groups.map(({ rank }) => lengthOf(rank));
    const whole = lengths.map((length, r) => filled(Uint8Array, length, (i) => value(r, i)));
    const parts = world.groups.map(({ rank }) =>
      whole.map((part, r) => (r === rank ? part.slice() : new Uint8Array(part.length))),
    );
    await world.counted(
      (group, rank) => group.allGather(parts[rank]!),
      (rank) => volumes.allGather(lengths, rank),
    );
    for (const mine of parts) for (const [r, part] of mine.entries()) expect(Buffer.compare(part, whole[r]!)).toBe(0);
  });

  it.each(shapes)("gathers %s parts at a root, and scatters them", async (_, lengthOf) => {
    const lengths = world.groups.map(({ rank }) => lengthOf(rank));
    const whole = lengths.map((length, r) => filled(Uint8Array, length, (i) => value(r, i)));
    for (const root of new Set([0, n >> 1, n - 1])) {
      const parts = lengths.map((length) => new Uint8Array(length));
      await world.counted(
        (group, rank) => group.gather(whole[rank]!.slice(), root, rank === root ? parts : undefined),
        (rank) => volumes.gather(lengths, rank, root),
      );
      for (const [r, part] of parts.entries()) expect(Buffer.compare(part, whole[r]!)).toBe(0);
      const xs = lengths.map((length) => new Uint8Array(length));
      await world.counted(
        (group, rank) => group.scatter(xs[rank]!, root, rank === root ? parts : undefined),
        (rank) => volumes.scatter(lengths, rank, root),
      );
      for (const [r, x] of xs.entries()) expect(Buffer.compare(x, whole[r]!)).toBe(0);
    }
  });

  it.each<[string, (from: number, to: number) => number]>([
    ["small", (from, to) => (from * 3 + to) % 4],
    // A segment ± 1 element.
    ["large", (from, to) => ((from + to) % 4 === 3 ? 0 : from < 3 ? mebibyte / 2 - 1 + ((from + to) % 4) : 5000)],
  ])("exchanges %s parts by all-to-all", async (_, lengthOf) => {
    const outgoing = world.groups.map(({ rank }) =>
      world.groups.map(({ rank: to }) => filled(Int16Array, lengthOf(rank, to), (i) => value(rank * 10 + to, i))),
    );
    const incoming = world.groups.map(({ rank }) =>
      world.groups.map(({ rank: from }) => new Int16Array(lengthOf(from, rank))),
    );
    await world.counted(
      (group, rank) => group.allToAll(outgoing[rank]!, incoming[rank]!),
      (rank) =>
        volumes.allToAll(
          outgoing[rank]!.map((part) => part.byteLength),
          rank,
        ),
    );
    for (const { rank } of world.groups)
      for (const { rank: from } of world.groups)
        expect(Buffer.compare(bytesOf(incoming[rank]![from]!), bytesOf(outgoing[from]![rank]!))).toBe(0);
  });

  it.each(sample([0, 1, 1001, 8193, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte + 1], n))(
    "broadcasts %i bytes from several roots",
    async (length) => {
      const pattern = filled(Uint8Array, length + n, (i) => value(0, i));
      for (const root of new Set([0, n >> 1, n - 1])) {
        const xs = world.groups.map(({ rank }) =>
          rank === root ? pattern.slice(root, root + length) : new Uint8Array(length),
        );
        await world.counted(
          (group, rank) => group.broadcast(xs[rank]!, root),
          (rank) => volumes.broadcast(length, n, rank, root),
        );
        for (const x of xs) expect(Buffer.compare(x, xs[root]!)).toBe(0);
      }
    },
  );

  it("carries every rank's note with an all-to-all, even an empty one", async () => {
    const parts = (length: number) => world.groups.map(() => new Uint8Array(length));
    for (const length of [0, 3, 100_000]) {
      const all = await everywhere(world.groups, (group, rank) =>
        group.allToAll(parts(length), parts(length), { note: 127 - rank }),
      );
      for (const notes of all) expect(notes).toEqual(world.groups.map(({ rank }) => 127 - rank));
    }
    expect(await everywhere(world.groups, (group) => group.allToAll(parts(1), parts(1)))).toEqual(
      world.groups.map(() => world.groups.map(() => 0)),
    );
    await expect(world.groups[0]!.allToAll(parts(1), parts(1), { note: 128 })).rejects.toThrow(RangeError);
  });

  it("sends and receives, in any order of the calls", async () => {
    const long = sample([mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte + 1], n);
    const lengths = [0, 1, n - 1, n, n + 1, 63, 64, 65, 5000, ...long];
    await everywhere(world.groups, async (group, rank) => {
      const others = world.groups.map((each) => each.rank).filter((each) => each !== rank);
      const arrived = new Map(others.map((from) => [from, lengths.map((length) => new Uint8Array(length))]));
      // Receives are called first, and in reverse order of the ranks: no send may wait for another peer's.
      const receives = others.toReversed().flatMap((from) => arrived.get(from)!.map((x) => group.recv(x, from)));
      const sends = others.flatMap((to) =>
        lengths.map((length) => group.send(new Uint8Array(length).fill(rank * n + to), to)),
      );
      await Promise.all([...receives, ...sends]);
      for (const from of others)
        arrived.get(from)!.forEach((x, k) => {
          expect(Buffer.compare(x, new Uint8Array(lengths[k]!).fill(from * n + rank))).toBe(0);
        });
    });
  });

  it("writes only into the view that it was given", async () => {
    for (const length of [3, 50_000]) {
      const buffers = world.groups.map(() => new Float32Array(length + 10).fill(-1));
      await everywhere(world.groups, (group, rank) =>
        group.allReduce(buffers[rank]!.subarray(7, 7 + length).fill(rank)),
      );
      for (const buffer of buffers) {
        const want = new Float32Array(length + 10).fill(-1);
        want.fill((n * (n - 1)) / 2, 7, 7 + length);
        expect(Buffer.compare(bytesOf(buffer), bytesOf(want))).toBe(0);
      }
    }
  });
}
