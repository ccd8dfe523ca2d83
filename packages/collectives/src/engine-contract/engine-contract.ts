/** What every engine must do. A new one's test calls this with a function that makes its worlds. */
import { type BufferLike, collectives } from "@terse/native-collectives";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  allGatherBytes,
  allReduceBytes,
  allToAllBytes,
  barrierBytes,
  broadcastBytes,
  gatherBytes,
  reduceScatterBytes,
  scatterBytes,
  type Volume,
} from "../bytes.ts";
import { CollectiveError } from "../errors.ts";
import type { Group, Reduction } from "../group.ts";

const mebibyte = 1 << 20;
type Numbers = Uint8Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;
type Storage = Numbers | BigInt64Array | Uint16Array;

/** An array of one type: what is handed to the group, the numbers in it, and its storage. */
interface Values {
  readonly memory: BufferLike;
  readonly array: Storage;
  read(): number[];
}
interface Type {
  readonly name: string;
  readonly bytes: number;
  /** Of a length beyond theirs, the numbers begin again. */
  make(numbers: readonly number[], length?: number): Values;
}

/** Fills x with what its beginning holds. */
function repeat<T extends Storage>(x: T, beginning: number): T {
  for (let done = beginning; done < x.length; done *= 2) x.copyWithin(done, 0, done);
  return x;
}

function typed(
  name: string,
  Type: new (length: number) => Numbers | BigInt64Array,
  store: (x: number) => number | bigint = (x) => x,
): Type {
  const make = (numbers: readonly number[], length = numbers.length) => {
    const memory = new Type(length);
    const elements = memory as { [i: number]: number | bigint };
    for (let i = 0; i < Math.min(length, numbers.length); i++) elements[i] = store(numbers[i]!);
    return { memory, array: repeat(memory, numbers.length), read: () => Array.from(memory, Number) };
  };
  return { name, bytes: new Type(0).BYTES_PER_ELEMENT, make };
}

/** Storage of 16 bits for numbers that it holds exactly: the upper bits of an f32, with a smaller exponent for f16. */
function halves(dtype: "f16" | "bf16"): Type {
  const [shift, bias] = dtype === "f16" ? [13, 112 << 10] : [16, 0];
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const pack = (x: number) => {
    float[0] = Math.abs(x);
    return (x < 0 ? 0x8000 : 0) | (x === 0 ? 0 : (bits[0]! >>> shift) - bias);
  };
  const unpack = (half: number) => {
    bits[0] = (half & 0x7fff) === 0 ? 0 : ((half & 0x7fff) + bias) << shift;
    return half & 0x8000 ? -float[0]! : float[0]!;
  };
  const make = (numbers: readonly number[], length = numbers.length) => {
    const array = new Uint16Array(length);
    array.set(numbers.slice(0, length).map(pack));
    repeat(array, numbers.length);
    const memory = { pointer: collectives().addressOf(array), length, dtype, device: "cpu", array };
    return { memory, array, read: () => Array.from(array, unpack) };
  };
  return { name: dtype, bytes: 2, make };
}

const types: readonly Type[] = [
  typed("u8", Uint8Array),
  typed("i8", Int8Array),
  typed("i16", Int16Array),
  typed("i32", Int32Array),
  typed("i64", BigInt64Array, BigInt),
  halves("f16"),
  halves("bf16"),
  typed("f32", Float32Array),
  typed("f64", Float64Array),
];

const combine: Record<Exclude<Reduction, "mean">, (a: number, b: number) => number> = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
};

/** The plain reduction: rank after rank, kept in the type's own storage, where integers wrap. */
function reduced(type: Type, op: Reduction, ranks: readonly number[][]): number[] {
  const kept = ranks.map((numbers) => type.make(numbers).read());
  const step = combine[op === "mean" ? "sum" : op];
  const all = kept.reduce((sum, x) => type.make(sum.map((each, i) => step(each, x[i]!))).read());
  return op === "mean" ? all.map((sum) => sum / ranks.length) : all;
}

/**
 * What rank r of n gives: whole numbers on both sides of 0 that no type rounds, in any order of adding. Products are powers of
 * two, and the mean of all ranks is whole.
 */
function operand(op: Reduction, rank: number, n: number, i: number): number {
  const salt = (i * 7 + rank * 3 + (i >> 8)) % 5;
  if (op === "prod") return salt % 2 === 0 ? 2 : -1;
  return op === "mean" ? 2 * rank - (n - 1) + (i % 7) : salt - 2;
}

const period = 1280;

/** f must repeat itself every `period` elements, as `value` does: most of a long array is copied. */
function filled<T extends Numbers>(Type: new (length: number) => T, length: number, f: (i: number) => number): T {
  const x = new Type(length);
  for (let i = 0; i < Math.min(length, period); i++) x[i] = f(i);
  return repeat(x, period);
}

/** Small whole numbers, the same again after 5 · 256. */
const value = (rank: number, i: number) => ((i * 7 + rank * 3 + (i >> 8)) % 5) + 1;

function total(ranks: number, i: number): number {
  let sum = 0;
  for (let rank = 0; rank < ranks; rank++) sum += value(rank, i);
  return sum;
}

/** Numbers whose sum depends on the order. */
const rough = (rank: number, i: number) => Math.fround(Math.sin(i * 12.9898 + rank * 78.233) * 2 ** ((i + rank) % 20));

/** Lengths where things go wrong: nothing, one more or less than the ranks, than the bytes and the bits of a word. */
const lengthsFor = (n: number) => [...new Set([0, 1, n - 1, n, n + 1, 2 * n + 1, 7, 8, 9, 63, 64, 65, 257])];

/** Some of many, others for every world: together the worlds see them all, each more than once. */
const sample = <T>(all: readonly T[], n: number) => (n <= 3 ? all : all.filter((_, i) => i % 4 === n % 4));

/** What an engine may do otherwise than the rest, because the library under it does. */
export interface Traits {
  /** Closed forms of what a rank sends. */
  readonly volumes?: typeof wireBytes;
  /** Messages announce themselves: ranks that disagree are told so, and a send or receive that has not begun can be taken back. */
  readonly headers?: boolean;
  /** Which types it adds; all are moved. */
  readonly adds?: (dtype: string) => boolean;
  /** The mean of so many ranks is the rounded sum divided once. */
  readonly dividesSums?: (ranks: number) => boolean;
  /** A NaN goes through min and max. */
  readonly keepsNaN?: boolean;
  /** The worlds that there can be. Default: those in which something is different. */
  readonly sizes?: readonly number[];
}

const wireBytes = {
  allReduce: allReduceBytes,
  reduceScatter: reduceScatterBytes,
  allGather: allGatherBytes,
  allToAll: allToAllBytes,
  broadcast: broadcastBytes,
  gather: gatherBytes,
  scatter: scatterBytes,
  barrier: barrierBytes,
};

export function engineContract(
  name: string,
  makeWorld: (size: number) => Promise<Group[]>,
  {
    volumes = wireBytes,
    headers = true,
    adds = () => true,
    dividesSums = () => true,
    keepsNaN = true,
    sizes,
  }: Traits = {},
): void {
  const without = (holds: boolean, why: string) => (holds ? "" : ` (skipped: ${why})`);
  const unannounced = without(headers, "its messages do not announce themselves");

  async function withWorld(size: number, run: (groups: Group[]) => Promise<void>): Promise<void> {
    const groups = await makeWorld(size);
    try {
      await run(groups);
    } finally {
      await Promise.all(groups.map((group) => group.close()));
    }
  }
  const everywhere = <T>(groups: Group[], call: (group: Group, rank: number) => Promise<T>) =>
    Promise.all(groups.map((group) => call(group, group.rank)));

  /** Runs the same calls on all ranks and compares what each has sent with the closed form, or the sum of several. */
  async function counted(
    groups: Group[],
    call: (g: Group, r: number) => Promise<unknown>,
    form: (r: number) => Volume | Volume[],
  ) {
    const before = groups.map((group) => group.sent());
    await everywhere(groups, call);
    groups.forEach((group, rank) => {
      const sent = group.sent();
      const forms = [form(rank)].flat();
      const messages = forms.reduce((sum, volume) => sum + volume.messages, 0);
      expect({
        rank,
        bytes: sent.bytes - before[rank]!.bytes,
        messages: sent.messages - before[rank]!.messages,
        headerBytes: sent.headerBytes - before[rank]!.headerBytes,
      }).toEqual({
        rank,
        bytes: forms.reduce((sum, volume) => sum + volume.bytes, 0),
        messages,
        headerBytes: headers ? 32 * messages : forms.reduce((sum, volume) => sum + (volume.headerBytes ?? 0), 0),
      });
    });
  }

  describe.each(sizes ?? [1, 2, 3, 4, 5, 6, 7, 8, 9])(`${name}, %i ranks`, (n) => {
    let groups: Group[];
    beforeAll(async () => {
      groups = await makeWorld(n);
    });
    afterAll(async () => {
      await Promise.all(groups.map((group) => group.close()));
    });

    it("knows who is who", () => {
      expect(groups.map(({ rank, size }) => [rank, size])).toEqual(groups.map((_, rank) => [rank, n]));
    });

    const operations = ["sum", "prod", "min", "max", "mean"] as const;
    const reduces = ({ name }: Type, op: Reduction) =>
      adds(name) && (op !== "mean" || (["f16", "bf16", "f32", "f64"].includes(name) && dividesSums(n)));

    it("reduces types with every operation at every awkward length, the same on all ranks, and in parts", async () => {
      for (const type of types.filter((_, i) => n <= 5 || (i + n) % 2 === 0))
        for (const op of operations.filter((each) => reduces(type, each))) {
          const cases = lengthsFor(n).map((length) => {
            const numbers = groups.map((_, rank) => Array.from({ length }, (_, i) => operand(op, rank, n, i)));
            const cut = (all: readonly number[], r: number) =>
              all.slice(Math.floor((length * r) / n), Math.floor((length * (r + 1)) / n));
            const parts = numbers.map((each) => groups.map((_, r) => type.make(cut(each, r))));
            const want = reduced(type, op, numbers);
            return { length, want, cut, parts, xs: numbers.map((each) => type.make(each)) };
          });
          await counted(
            groups,
            (group, rank) =>
              Promise.all(
                cases.flatMap(({ xs, parts }) => [
                  group.allReduce(xs[rank]!.memory, op),
                  group.reduceScatter(
                    parts[rank]!.map(({ memory }) => memory),
                    op,
                  ),
                ]),
              ),
            (rank) =>
              cases.flatMap(({ length, parts }) => [
                volumes.allReduce(length, type.bytes, n, rank),
                volumes.reduceScatter(
                  parts[rank]!.map(({ array }) => array.byteLength),
                  rank,
                ),
              ]),
          );
          for (const { length, want, cut, parts, xs } of cases) {
            for (const x of xs) expect(x.read(), `${type.name} ${op} ${length}`).toEqual(want);
            for (const { rank } of groups)
              expect(parts[rank]![rank]!.read(), `${type.name} ${op} ${length}`).toEqual(cut(want, rank));
          }
        }
    });

    it("reduces a mebibyte of every type, and an element more or less, with every operation in some world", async () => {
      for (const [t, type] of types.entries())
        for (const op of operations.filter((each, k) => reduces(type, each) && (n <= 3 || (k + t + n) % 5 === 0))) {
          const numbers = groups.map((_, rank) => Array.from({ length: period }, (_, i) => operand(op, rank, n, i)));
          const want = reduced(type, op, numbers);
          const lengths = [-1, 0, 1].map((more) => mebibyte / type.bytes + more);
          const xs = numbers.map((each) => lengths.map((length) => type.make(each, length)));
          await everywhere(groups, (_, rank) =>
            Promise.all(xs[rank]!.map(({ memory }) => groups[rank]!.allReduce(memory, op))),
          );
          for (const [at, length] of lengths.entries()) {
            const all = bytesOf(type.make(want, length).array);
            for (const x of xs) expect(Buffer.compare(bytesOf(x[at]!.array), all), `${type.name} ${op}`).toBe(0);
          }
        }
    });

    it("moves every type in every other way", async () => {
      const root = n - 1;
      const own = (type: Type, r: number) => type.make([r, -r, 2].slice(0, r % 4)); // 0 to 3 elements
      for (const type of types) {
        const blank = (r: number) => type.make(own(type, r).read().fill(9));
        await everywhere(groups, async (group, rank) => {
          const everyone = (of: (type: Type, r: number) => Values) => groups.map((_, r) => of(type, r));
          const memories = (all: readonly Values[]) => all.map(({ memory }) => memory);
          const want = everyone(own).map((each) => each.read());
          const [gathered, collected, swapped] = [everyone(own), everyone(own), everyone((_, r) => blank(r))];
          groups.forEach((_, r) => {
            if (r !== rank) gathered[r] = blank(r);
            collected[r] = blank(r);
          });
          const outgoing = groups.map(() => own(type, rank));
          const [spread, told] = [blank(rank), type.make(rank === root ? [1, -2, 0] : [9, 9, 9])];
          const calls: Promise<unknown>[] = [
            group.allGather(memories(gathered)),
            group.gather(own(type, rank).memory, root, memories(collected)),
            group.scatter(spread.memory, root, memories(everyone(own))),
            group.allToAll(memories(outgoing), memories(swapped)),
            group.broadcast(told.memory, root),
          ];
          const heard = blank((rank + n - 1) % n);
          if (n > 1)
            calls.push(
              group.send(own(type, rank).memory, (rank + 1) % n),
              group.recv(heard.memory, (rank + n - 1) % n),
            );
          await Promise.all(calls);
          const kept = type.make([1, -2, 0]).read();
          expect(gathered.map((each) => each.read())).toEqual(want);
          if (rank === root) expect(collected.map((each) => each.read())).toEqual(want);
          expect(spread.read()).toEqual(want[rank]);
          expect(swapped.map((each) => each.read())).toEqual(want);
          expect(told.read()).toEqual(kept);
          if (n > 1) expect(heard.read()).toEqual(want[(rank + n - 1) % n]);
        });
      }
    });

    it.each(sample([8191, 8192, 8193, 65536 * 3 + 5, mebibyte - 1, mebibyte, mebibyte + 1, 4 * mebibyte + 3], n))(
      "adds %i bytes",
      async (length) => {
        const want = filled(Uint8Array, length, (i) => total(n, i));
        const xs = groups.map(({ rank }) => filled(Uint8Array, length, (i) => value(rank, i)));
        await counted(
          groups,
          (group, rank) => group.allReduce(xs[rank]!),
          (rank) => volumes.allReduce(length, 1, n, rank),
        );
        for (const x of xs) expect(Buffer.compare(x, want)).toBe(0);
      },
    );

    it.each(sample([5, 2000, 20_011, 300_001], n))(
      "rounds sums of %i floats alike on all ranks, and alike every time",
      async (length) => {
        const run = async () => {
          const xs = groups.map(({ rank }) => Float32Array.from({ length }, (_, i) => rough(rank, i)));
          await everywhere(groups, (group, rank) => group.allReduce(xs[rank]!));
          return xs;
        };
        const [first, second] = [await run(), await run()];
        for (const x of [...first, ...second]) expect(Buffer.compare(bytesOf(x), bytesOf(first[0]!))).toBe(0);
        for (let i = 0; i < length; i += 97) {
          const terms = groups.map(({ rank }) => rough(rank, i));
          const size = terms.reduce((sum, term) => sum + Math.abs(term), 0);
          const exact = terms.reduce((sum, term) => sum + term, 0);
          expect(Math.abs(first[0]![i]! - exact)).toBeLessThanOrEqual(n * 2 ** -24 * size);
        }
      },
    );

    it.each([
      ["few", (r: number) => (r === 1 ? 0 : 3 * r + 1)],
      ["many", (r: number) => (r === 1 ? 0 : 30_000 * r + 77)],
    ])("reduces and scatters parts of unequal lengths, %s elements", async (_, lengthOf) => {
      const lengths = groups.map(({ rank }) => lengthOf(rank));
      const parts = groups.map(({ rank }) =>
        lengths.map((length, r) => filled(Int32Array, length, (i) => value(rank, i + r))),
      );
      await counted(
        groups,
        (group, rank) => group.reduceScatter(parts[rank]!),
        (rank) =>
          volumes.reduceScatter(
            lengths.map((length) => 4 * length),
            rank,
          ),
      );
      groups.forEach(({ rank }) => {
        const want = filled(Int32Array, lengths[rank]!, (i) => total(n, i + rank));
        expect(Buffer.compare(bytesOf(parts[rank]![rank]!), bytesOf(want))).toBe(0);
      });
    });

    const shapes: [string, (r: number) => number][] = [
      ["small", (r) => (r === 0 ? 0 : 5 * r)],
      ["large", (r) => (r === 0 ? 0 : r < 4 ? mebibyte - 2 + r : 8190 + r)], // a segment, and what rides with a header, ± 1
      ["equal", () => 1000],
    ];
    it.each(shapes)("gathers %s parts on all ranks", async (_, lengthOf) => {
      const lengths = groups.map(({ rank }) => lengthOf(rank));
      const whole = lengths.map((length, r) => filled(Uint8Array, length, (i) => value(r, i)));
      const parts = groups.map(({ rank }) =>
        whole.map((part, r) => (r === rank ? part.slice() : new Uint8Array(part.length))),
      );
      await counted(
        groups,
        (group, rank) => group.allGather(parts[rank]!),
        (rank) => volumes.allGather(lengths, rank),
      );
      for (const mine of parts) for (const [r, part] of mine.entries()) expect(Buffer.compare(part, whole[r]!)).toBe(0);
    });

    it.each(shapes)("gathers %s parts at a root and scatters them from it", async (_, lengthOf) => {
      const lengths = groups.map(({ rank }) => lengthOf(rank));
      const whole = lengths.map((length, r) => filled(Uint8Array, length, (i) => value(r, i)));
      for (const root of new Set([0, n >> 1, n - 1])) {
        const parts = lengths.map((length) => new Uint8Array(length));
        await counted(
          groups,
          (group, rank) => group.gather(whole[rank]!.slice(), root, rank === root ? parts : undefined),
          (rank) => volumes.gather(lengths, rank, root),
        );
        for (const [r, part] of parts.entries()) expect(Buffer.compare(part, whole[r]!)).toBe(0);
        const xs = lengths.map((length) => new Uint8Array(length));
        await counted(
          groups,
          (group, rank) => group.scatter(xs[rank]!, root, rank === root ? parts : undefined),
          (rank) => volumes.scatter(lengths, rank, root),
        );
        for (const [r, x] of xs.entries()) expect(Buffer.compare(x, whole[r]!)).toBe(0);
      }
    });

    it.each<[string, (from: number, to: number) => number]>([
      ["small", (from, to) => (from * 3 + to) % 4],
      // A segment, and an element more or less.
      ["large", (from, to) => ((from + to) % 4 === 3 ? 0 : from < 3 ? mebibyte / 2 - 1 + ((from + to) % 4) : 5000)],
    ])("exchanges %s parts of all to all", async (_, lengthOf) => {
      const outgoing = groups.map(({ rank }) =>
        groups.map(({ rank: to }) => filled(Int16Array, lengthOf(rank, to), (i) => value(rank * 10 + to, i))),
      );
      const incoming = groups.map(({ rank }) => groups.map(({ rank: from }) => new Int16Array(lengthOf(from, rank))));
      await counted(
        groups,
        (group, rank) => group.allToAll(outgoing[rank]!, incoming[rank]!),
        (rank) =>
          volumes.allToAll(
            outgoing[rank]!.map((part) => part.byteLength),
            rank,
          ),
      );
      for (const { rank } of groups)
        for (const { rank: from } of groups)
          expect(Buffer.compare(bytesOf(incoming[rank]![from]!), bytesOf(outgoing[from]![rank]!))).toBe(0);
    });

    it.each(sample([0, 1, 1001, 8193, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte + 1], n))(
      "broadcasts %i bytes from one root and another",
      async (length) => {
        const pattern = filled(Uint8Array, length + n, (i) => value(0, i));
        for (const root of new Set([0, n >> 1, n - 1])) {
          const xs = groups.map(({ rank }) =>
            rank === root ? pattern.slice(root, root + length) : new Uint8Array(length),
          );
          await counted(
            groups,
            (group, rank) => group.broadcast(xs[rank]!, root),
            (rank) => volumes.broadcast(length, n, rank, root),
          );
          for (const x of xs) expect(Buffer.compare(x, xs[root]!)).toBe(0);
        }
      },
    );

    it("carries every rank's note beside an all-to-all, even an empty one", async () => {
      for (const length of [0, 3, 100_000]) {
        const parts = () => groups.map(() => new Uint8Array(length));
        const heard = await everywhere(groups, (group, rank) => group.allToAll(parts(), parts(), { note: 127 - rank }));
        for (const notes of heard) expect(notes).toEqual(groups.map(({ rank }) => 127 - rank));
      }
      const parts = groups.map(() => new Uint8Array(1));
      expect(await everywhere(groups, (group) => group.allToAll(parts, parts))).toEqual(
        groups.map(() => groups.map(() => 0)),
      );
      await expect(groups[0]!.allToAll(parts, parts, { note: 128 })).rejects.toThrow(RangeError);
    });

    it.skipIf(!dividesSums(n))(
      `takes the mean of floats, which is the rounded sum divided once${without(dividesSums(n), "it multiplies by 1/n first")}`,
      async () => {
        for (const Type of [Float32Array, Float64Array])
          for (const length of [1, 50, 40_001]) {
            const make = () =>
              groups.map(({ rank }) => (Type as typeof Float64Array).from({ length }, (_, i) => rough(rank, i)));
            const [sums, means, scattered] = [make(), make(), make()];
            await everywhere(groups, (group, rank) => group.allReduce(sums[rank]!));
            await everywhere(groups, (group, rank) => group.allReduce(means[rank]!, "mean"));
            const want = (Type as typeof Float64Array).from(sums[0]!, (sum) => sum / n);
            for (const mean of means) expect(Buffer.compare(bytesOf(mean), bytesOf(want))).toBe(0);
            // The same cut as the all-reduce makes, so the same sums.
            const cut = (x: Float64Array) =>
              groups.map(({ rank: r }) => x.subarray(Math.floor((length * r) / n), Math.floor((length * (r + 1)) / n)));
            await everywhere(groups, (group, rank) => group.reduceScatter(cut(scattered[rank]!), "mean"));
            for (const { rank } of groups)
              expect(Buffer.compare(bytesOf(cut(scattered[rank]!)[rank]!), bytesOf(cut(want)[rank]!))).toBe(0);
          }
        await expect(groups[0]!.allReduce(new Int32Array(1), "mean")).rejects.toThrow("i32 has no exact mean");
      },
    );

    it("sends and receives in any order of the calls", async () => {
      const long = sample([mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte + 1], n);
      const lengths = [0, 1, n - 1, n, n + 1, 63, 64, 65, 5000, ...long];
      await everywhere(groups, async (group, rank) => {
        const others = groups.map((each) => each.rank).filter((each) => each !== rank);
        const arrived = new Map(others.map((from) => [from, lengths.map((length) => new Uint8Array(length))]));
        // Receives first, and from the far end: neither may wait for the other.
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

    it("lets nobody out of a barrier before all are in", async () => {
      let inside = 0;
      await counted(
        groups,
        async (group, rank) => {
          await new Promise((resolve) => setTimeout(resolve, 5 * rank));
          inside++;
          await group.barrier();
          expect(inside).toBe(n);
        },
        () => volumes.barrier(n),
      );
    });

    it("keeps the order of operations in flight", async () => {
      await everywhere(groups, async (group, rank) => {
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

    it("keeps what long operations in flight say to each other", async () => {
      // The second begins before the tail of the first has come, unless it needs it.
      const many = () => Array.from({ length: n }, () => new Uint8Array(100_000));
      await everywhere(groups, async (group, rank) => {
        const [out, there, back, own, more] = [many(), many(), many(), many(), many()];
        for (const [r, part] of out.entries()) part.fill(1 + rank * n + r);
        own[rank]!.fill(rank + 1);
        const settled: number[] = [];
        const calls = [
          group.allToAll(out, there, { note: 5 }), // there[r] = 1 + r n + rank
          group.allToAll(there, back, { note: rank }), // what the first brings goes back: back[r] = 1 + rank n + r
          group.allGather(back), // back[r] = 1 + r n + r
          group.allGather(own), // this one and the next need nothing of those before
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
          groups.map(() => 5),
          groups.map((_, r) => r),
          undefined,
          undefined,
          groups.map(() => 7),
        ]);
        for (let r = 0; r < n; r++) {
          const got = [there, back, own, more].map((parts) => parts[r]!);
          const want = [1 + r * n + rank, 1 + r * n + r, r + 1, 1 + r * n + rank];
          for (const [k, part] of got.entries())
            expect(Buffer.compare(part, new Uint8Array(part.length).fill(want[k]!))).toBe(0);
        }
      });
    });

    it("touches only the view that it was given", async () => {
      for (const length of [3, 50_000]) {
        const buffers = groups.map(() => new Float32Array(length + 10).fill(-1));
        await everywhere(groups, (group, rank) => group.allReduce(buffers[rank]!.subarray(7, 7 + length).fill(rank)));
        for (const buffer of buffers) {
          const want = new Float32Array(length + 10).fill(-1);
          want.fill((n * (n - 1)) / 2, 7, 7 + length);
          expect(Buffer.compare(bytesOf(buffer), bytesOf(want))).toBe(0);
        }
      }
    });

    it("refuses arguments that cannot be right, and goes on", async () => {
      await everywhere(groups, async (group, rank) => {
        const part = new Float32Array(2);
        const tooMany = Array.from({ length: n + 1 }, () => part);
        await expect(group.allGather(tooMany)).rejects.toThrow(
          `allGather: parts must have one entry per rank, so ${n}, and has ${n + 1}`,
        );
        await expect(group.reduceScatter([])).rejects.toThrow(RangeError);
        await expect(group.broadcast(part, n)).rejects.toThrow(`broadcast: there is no rank ${n} among ${n}`);
        await expect(group.gather(part, n, [])).rejects.toThrow(`gather: there is no rank ${n} among ${n}`);
        if (rank === 0) {
          await expect(group.gather(part, 0)).rejects.toThrow("gather: rank 0 is the root and must give parts");
          const parts = groups.map(() => new Float32Array(3));
          await expect(group.gather(part, 0, parts)).rejects.toThrow(
            "gather: the root's memory has 2 elements, and parts[0], its own, has 3",
          );
          await expect(group.scatter(new Int32Array(3), 0, parts)).rejects.toThrow(
            "scatter: the memory is i32 and the parts are f32",
          );
        }
        await expect(group.send(part, rank)).rejects.toThrow(RangeError);
        await expect(group.allReduce([1, 2] as never)).rejects.toThrow(TypeError);
        await expect(group.allReduce(new Uint32Array(1), "max")).rejects.toThrow(
          "max of a Uint32Array is not supported",
        );
        await expect(group.allReduce(part, "median" as never)).rejects.toThrow("no reduction is called median");
        const odd = { pointer: 0n, length: 0, dtype: "f8" as never, device: "cpu" };
        if (rank === 0) await expect(group.allReduce(odd)).rejects.toThrow("unknown dtype f8");
        const onDevice = { pointer: 0n, length: 1, dtype: "f32", device: "cuda:77" } as const;
        await expect(group.allReduce(onDevice)).rejects.toThrow("the memory is on cuda:77");
        const mixed = groups.map(({ rank: r }) => (r === n - 1 ? new Float64Array(2) : part));
        if (n > 1) await expect(group.allGather(mixed)).rejects.toThrow("parts[0] is f32");
        await group.barrier();
      });
    });

    it.skipIf(!keepsNaN)(
      `hands a NaN on through min and max${without(keepsNaN, "what becomes of it is the library's")}`,
      async () => {
        await everywhere(groups, async (group, rank) => {
          for (const op of ["min", "max"] as const) {
            const x = Float32Array.of(rank === n - 1 ? Number.NaN : rank, rank);
            await group.allReduce(x, op);
            expect([...x]).toEqual([Number.NaN, op === "min" ? 0 : n - 1]);
          }
        });
      },
    );

    it("splits by color and key, and splits what it has split, and works in all groups", async () => {
      await everywhere(groups, async (group, rank) => {
        // Even ranks in reverse order, odd ones as they are.
        const inner = (await group.split(rank % 2, rank % 2 === 0 ? -rank : 0))!;
        const members = groups.map((each) => each.rank).filter((each) => each % 2 === rank % 2);
        if (rank % 2 === 0) members.reverse();
        expect([inner.rank, inner.size]).toEqual([members.indexOf(rank), members.length]);
        const x = Int32Array.of(rank);
        const parts = members.map((_, r) => (r === inner.rank ? Int32Array.of(rank) : new Int32Array(1)));
        await Promise.all([group.allReduce(x), inner.allGather(parts)]);
        expect(x[0]).toBe((n * (n - 1)) / 2);
        expect(parts.map(([part]) => part)).toEqual(members);
        // A group of a group: its first member alone, and the rest; all three are used at once.
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

    it("ends for everybody when one aborts", () =>
      withWorld(n, async (groups) => {
        const waiting = groups.slice(1).map((group) => group.allReduce(new Float32Array(100_000)));
        groups[0]!.abort("the loss is NaN");
        const outcomes = await Promise.allSettled([
          ...waiting,
          groups[0]!.barrier(),
          ...groups.slice(1).map((group) => group.barrier()),
        ]);
        for (const outcome of outcomes) {
          expect(outcome.status).toBe("rejected");
          const error = (outcome as PromiseRejectedResult).reason;
          expect(error).toBeInstanceOf(CollectiveError);
          expect(error.message).toBe("rank 0 aborted the group: the loss is NaN");
        }
      }));

    it("is over after close", () =>
      withWorld(n, async (groups) => {
        await Promise.all(groups.map((group) => group.close()));
        await expect(groups[0]!.barrier()).rejects.toThrow("the group is closed");
        await groups[0]!.close();
      }));
  });

  describe.each(sizes ?? [2, 3])(`${name}, %i ranks, one of which has a signal`, (n) => {
    const unbuffered = 8 << 20; // floats: more than any engine takes before the receive is there
    const reasonOf = async (call: Promise<unknown>) => {
      const [outcome] = await Promise.allSettled([call]);
      return outcome!.status === "rejected" ? (outcome!.reason as Error) : undefined;
    };

    it.each(["at once", "soon", "before"])(
      "ends on every rank when it is aborted %s, and touches no memory any more",
      async (when) => {
        for (let round = 0; round < 4; round++)
          await withWorld(n, async (groups) => {
            const cancel = new AbortController();
            let leave = () => {};
            const left = new Promise<void>((resolve) => {
              leave = resolve;
            });
            if (when === "before") cancel.abort("enough");
            const xs = groups.map(() => new Float32Array(round < 2 ? 400_000 : 3_000_000).fill(1));
            await everywhere(groups, (group) => group.barrier());
            const errors = everywhere(groups, async (group, rank) => {
              const options = rank === 1 ? { signal: cancel.signal } : {};
              // Rank 0 comes only once before rank 1 has heard the signal, so that this cannot finish.
              const first = reasonOf(group.allReduce(xs[rank]!, "sum", options));
              if (rank === 0) await left;
              const second = reasonOf(group.allReduce(xs[rank]!, "sum", options));
              const [, error] = await Promise.all([first, second]);
              if (rank === 1) leave();
              xs[rank]!.fill(7);
              return error;
            });
            if (when === "soon") await new Promise((resolve) => setTimeout(resolve, 2 * round));
            cancel.abort("enough");
            for (const error of await errors) {
              expect(error).toBeInstanceOf(CollectiveError);
              expect(error!.message).toMatch(/^rank 1 cancelled all-reduce number [23]: enough$/);
            }
            await new Promise((resolve) => setTimeout(resolve, 10));
            for (const x of xs) expect(x.every((each) => each === 7)).toBe(true);
          });
      },
    );

    it.skipIf(!headers)(
      `takes back alone a receive whose message has not come, and the next one gets it${unannounced}`,
      () =>
        withWorld(n, async (groups) => {
          const reason = new Error("no longer");
          const x = new Float32Array(70_000);
          for (const wait of [0, 5]) {
            const cancel = new AbortController();
            const options = { signal: cancel.signal };
            const receives = [groups[1]!.recv(x, 0, options), groups[1]!.recv(x, 0, options)].map(reasonOf);
            await new Promise((resolve) => setTimeout(resolve, wait));
            cancel.abort(reason);
            expect(await Promise.all(receives)).toEqual([reason, reason]);
          }
          expect(await reasonOf(groups[1]!.recv(x, 0, { signal: AbortSignal.abort(reason) }))).toBe(reason);
          await Promise.all([groups[0]!.send(new Float32Array(70_000).fill(3), 1), groups[1]!.recv(x, 0)]);
          expect(x.every((each) => each === 3)).toBe(true);
          await everywhere(groups, (group) => group.barrier());
        }),
    );

    it.skipIf(!headers)(
      `loses nothing when a receive is taken back while its message arrives${unannounced}`,
      async () => {
        const seen = { taken: 0, arrived: 0 };
        const times = sizes ? 90 : 300; // it takes long where another group is other processes'
        // Where the receive had begun the group ends, and another one goes on.
        for (let k = 0; k < times; )
          await withWorld(n, async (groups) => {
            const begin = performance.now();
            for (let i = 0; i < 10; i++)
              await Promise.all([groups[1]!.recv(new Uint8Array(1), 0), groups[0]!.send(Uint8Array.of(1), 1)]);
            const usual = Math.min((performance.now() - begin) / 10, 10); // ms
            for (; k < times; k++) {
              const cancel = new AbortController();
              const x = new Uint8Array(1);
              const receive = reasonOf(groups[1]!.recv(x, 0, { signal: cancel.signal }));
              const send = reasonOf(groups[0]!.send(Uint8Array.of(k % 251), 1));
              const until = performance.now() + ((k % 30) / 10) * usual; // some before, some after, some at once
              while (performance.now() < until);
              if (k % 30 === 29) await receive; // where every processor is busy, it comes only when this one rests
              cancel.abort(new Error("no longer"));
              const error = await receive;
              if (error instanceof CollectiveError) {
                expect(error.message).toMatch(/^rank 1 cancelled receive number \d+ from rank 0: no longer$/);
                await send;
                return void k++;
              }
              if (error) await groups[1]!.recv(x, 0);
              seen[error ? "taken" : "arrived"]++;
              expect(x[0]).toBe(k % 251);
              expect(await send).toBeUndefined();
            }
          });
        expect(seen.taken).toBeGreaterThan(0);
        expect(seen.arrived).toBeGreaterThan(0);
      },
    );

    it.skipIf(!headers)(
      `takes back alone a send that waits for another, and the next one takes its place${unannounced}`,
      () =>
        withWorld(n, async (groups) => {
          const cancel = new AbortController();
          const send = (fill: number, signal?: AbortSignal) =>
            groups[0]!.send(new Float32Array(unbuffered).fill(fill), 1, { signal });
          const sends = [send(1), send(2, cancel.signal), send(3)].map(reasonOf);
          cancel.abort(new Error("no longer"));
          expect((await sends[1])!.message).toBe("no longer");
          for (const want of [1, 3]) {
            const x = new Float32Array(unbuffered);
            await groups[1]!.recv(x, 0);
            expect(x.every((each) => each === want)).toBe(true);
          }
          expect(await Promise.all(sends)).toEqual([undefined, expect.any(Error), undefined]);
        }),
    );

    it("ends on every rank when what has begun is a send", () =>
      withWorld(n, async (groups) => {
        const cancel = new AbortController();
        const before = groups[0]!.sent().messages;
        const send = reasonOf(groups[0]!.send(new Float32Array(unbuffered), 1, { signal: cancel.signal }));
        while (groups[0]!.sent().messages === before) await new Promise((resolve) => setTimeout(resolve, 1));
        cancel.abort(new Error("too late"));
        const errors = [await send, ...(await everywhere(groups, (group) => reasonOf(group.barrier())))];
        for (const error of errors) expect(error!.message).toBe("rank 0 cancelled send number 1 to rank 1: too late");
        expect(errors[0]!.cause).toBe(cancel.signal.reason);
      }));

    it("goes on when what it belongs to has finished, or could not be called", () =>
      withWorld(n, async (groups) => {
        const cancel = new AbortController();
        const { signal } = cancel;
        await everywhere(groups, (group) => group.barrier({ signal }));
        cancel.abort();
        await expect(groups[0]!.broadcast(new Float32Array(1), n, { signal })).rejects.toThrow(RangeError);
        await everywhere(groups, (group) => group.barrier());
      }));
  });

  describe.skipIf(!headers).each(sizes ?? [2, 3, 5])(`${name}, %i ranks that do not agree${unannounced}`, (n) => {
    /** Runs calls that do not fit together, then barriers; every rank must fail, all with one sentence. */
    async function disagree(call: (group: Group, rank: number) => Promise<unknown>, sentence: RegExp): Promise<void> {
      await withWorld(n, async (groups) => {
        const errors = await everywhere(groups, async (group, rank) => {
          try {
            await call(group, rank);
            await group.barrier();
          } catch (error) {
            await expect(group.barrier()).rejects.toBe(error); // and stays so
            return error as Error;
          }
          throw new Error(`rank ${rank} did not notice`);
        });
        for (const error of errors) {
          expect(error).toBeInstanceOf(CollectiveError);
          expect(error.message).toBe(errors[0]!.message);
          expect(error.message).toMatch(sentence);
        }
      });
    }

    it.each([
      ["few", 10, 11],
      ["many", 500_000, 400_000],
      ["few and many", 10, 400_000],
      ["none and some", 0, 7],
    ])("fail together over sizes, naming ranks and sizes: %s", (_, usual, odd) =>
      disagree(
        (group, rank) => group.allReduce(new Float32Array(rank === 1 ? odd : usual)),
        new RegExp(
          `all-reduce number 1 failed on rank \\d: rank \\d has (${usual}|${odd}) f32 where rank \\d has (${usual}|${odd}) f32`,
        ),
      ),
    );

    it("fail together over types", () =>
      disagree(
        (group, rank) => group.allReduce(rank === 0 ? new Float64Array(5) : new Float32Array(5)),
        /rank \d has 5 f(32|64) where rank \d has 5 f(64|32)/,
      ));

    it("fail together over the reduction", () =>
      disagree(
        (group, rank) => group.allReduce(new Float32Array(5), rank === 0 ? "max" : "sum"),
        /asks for (max|sum) and rank \d for (sum|max)/,
      ));

    it("fail together over the operation", () =>
      disagree(
        (group, rank) =>
          rank === 0
            ? group.allReduce(new Float32Array(70_000))
            : group.allGather(Array.from({ length: n }, () => new Float32Array(70_000))),
        /every rank must call the same operations in the same order/,
      ));

    it("fail together over the lengths of the parts", () =>
      disagree(
        (group, rank) =>
          group.reduceScatter(
            Array.from(
              { length: n },
              (_, r) => new Float32Array(rank === 0 ? 100_000 : 100_000 + (r === 0 ? 1 : r === 1 ? -1 : 0)),
            ),
          ),
        /give different lengths of the parts; every rank must give the same list$/,
      ));

    it("fail together over the lengths of all-to-all", () =>
      disagree(
        (group, rank) =>
          group.allToAll(
            Array.from({ length: n }, () => new Float32Array(3)),
            Array.from({ length: n }, (_, r) => new Float32Array(rank === 1 && r === 0 ? 4 : 3)),
          ),
        /all-to-all number 1 failed on rank 1: rank 0 has 3 f32 where rank 1 has 4 f32/,
      ));

    const views: [string, (rank: number) => number][] = [
      ["one rank has another root", (rank) => (rank === 0 ? 0 : 1)],
      ["everybody waits for the next rank", (rank) => (rank + 1) % n],
      ["everybody is the root", (rank) => rank],
    ];
    describe.each(views)("where %s", (_, rootOf) => {
      const sentence = (call: string) =>
        new RegExp(
          `^${call} number 1 failed on rank \\d: the root of this ${call} is rank \\d on rank \\d and rank \\d on rank \\d; every rank must name the same root$`,
        );
      it.each([3, 100_000])("fail together over the root of %i elements", async (length) => {
        const x = () => new Float32Array(length);
        const parts = () => Array.from({ length: n }, x);
        await disagree((group, rank) => group.broadcast(x(), rootOf(rank)), sentence("broadcast"));
        await disagree((group, rank) => group.gather(x(), rootOf(rank), parts()), sentence("gather"));
        await disagree((group, rank) => group.scatter(x(), rootOf(rank), parts()), sentence("scatter"));
      });
    });

    it("fail together over the lengths of a gather or a scatter", async () => {
      const parts = (odd: number) => Array.from({ length: n }, (_, r) => new Float32Array(r === 1 ? odd : 3));
      const counts = /rank [01] has [34] f32 where rank [01] has [34] f32/;
      await disagree((group) => group.gather(new Float32Array(3), 0, parts(4)), counts);
      await disagree((group) => group.scatter(new Float32Array(3), 0, parts(4)), counts);
    });

    it("fail together over what is sent and received", () =>
      disagree(async (group, rank) => {
        if (rank === 0) await group.send(new Float32Array(50_000), 1);
        if (rank === 1) await group.recv(new Float32Array(60_000), 0);
      }, /send number 1 failed on rank 1: rank 0 has 50000 f32 where rank 1 has 60000 f32/));

    it("fail when one has closed and others split", () =>
      withWorld(n, async (groups) => {
        const leaving = groups[0]!.close();
        const errors = await Promise.all(groups.slice(1).map((group) => group.split(0).catch((each: unknown) => each)));
        for (const error of errors) {
          expect(error).toBeInstanceOf(CollectiveError);
          expect((error as Error).message).toMatch(
            /^rank 0 closed the group without the split that rank \d has called; every rank must call the same operations/,
          );
        }
        await leaving;
      }));

    it("fail when one has closed and others go on", () =>
      withWorld(n, async (groups) => {
        const leaving = groups[0]!.barrier().then(() => groups[0]!.close());
        const errors = await Promise.all(
          groups.slice(1).map(async (group) => {
            try {
              await group.barrier();
              await group.allReduce(new Float32Array(100_000));
            } catch (error) {
              return error as Error;
            }
            return undefined;
          }),
        );
        for (const error of errors)
          expect(error?.message).toMatch(
            /^rank 0 closed the group after 1 collectives, and rank \d has called 2; every rank must call the same operations/,
          );
        await leaving;
      }));
  });
}

function bytesOf(x: Storage): Uint8Array {
  return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
}
