/**
 * What a reduction returns: the right sums, bit for bit the same on all ranks, for as many bytes as the closed forms
 * say.
 */
import { expect, it } from "vitest";
import type { Reduction } from "../../group.ts";
import {
  bytesOf,
  filled,
  lengthsFor,
  mebibyte,
  operand,
  period,
  reduced,
  rough,
  sample,
  type Type,
  total,
  types,
  value,
} from "./values.ts";
import { everywhere, type SharedWorld, skippedUnless } from "./world.ts";

export function reductions(world: SharedWorld): void {
  const { n } = world;
  const { volumes, adds, dividesSums, keepsNaN } = world.engine.traits;

  const operations = ["sum", "prod", "min", "max", "mean"] as const;
  const reduces = ({ name }: Type, op: Reduction) =>
    adds(name) && (op !== "mean" || (["f16", "bf16", "f32", "f64"].includes(name) && dividesSums(n)));

  it("all-reduces and reduce-scatters every type with every reduction, at every length where errors are likely", async () => {
    // In larger worlds every other pair: each type, and each reduction, is in all of them.
    for (const [t, type] of types.entries())
      for (const op of operations.filter((each, k) => reduces(type, each) && (n <= 3 || (k + t + n) % 2 === 0))) {
        const cases = lengthsFor(n).map((length) => {
          const numbers = world.groups.map((_, rank) => Array.from({ length }, (_, i) => operand(op, rank, n, i)));
          const cut = (all: readonly number[], r: number) =>
            all.slice(Math.floor((length * r) / n), Math.floor((length * (r + 1)) / n));
          const parts = numbers.map((each) => world.groups.map((_, r) => type.make(cut(each, r))));
          const want = reduced(type, op, numbers);
          return { length, want, cut, parts, xs: numbers.map((each) => type.make(each)) };
        });
        await world.counted(
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
          for (const { rank } of world.groups)
            expect(parts[rank]![rank]!.read(), `${type.name} ${op} ${length}`).toEqual(cut(want, rank));
        }
      }
  });

  it("all-reduces about a mebibyte of every type; every reduction runs in some world", async () => {
    for (const [t, type] of types.entries())
      for (const op of operations.filter((each, k) => reduces(type, each) && (n <= 3 || (k + t + n) % 5 === 0))) {
        const numbers = world.groups.map((_, rank) =>
          Array.from({ length: period }, (_, i) => operand(op, rank, n, i)),
        );
        const want = reduced(type, op, numbers);
        const lengths = [-1, 0, 1].map((more) => mebibyte / type.bytes + more);
        const xs = numbers.map((each) => lengths.map((length) => type.make(each, length)));
        await everywhere(world.groups, (_, rank) =>
          Promise.all(xs[rank]!.map(({ memory }) => world.groups[rank]!.allReduce(memory, op))),
        );
        for (const [at, length] of lengths.entries()) {
          const all = bytesOf(type.make(want, length).array);
          for (const x of xs) expect(Buffer.compare(bytesOf(x[at]!.array), all), `${type.name} ${op}`).toBe(0);
        }
      }
  });

  it.each(sample([8191, 8192, 8193, 65536 * 3 + 5, mebibyte - 1, mebibyte, mebibyte + 1, 4 * mebibyte + 3], n))(
    "adds %i bytes",
    async (length) => {
      const want = filled(Uint8Array, length, (i) => total(n, i));
      const xs = world.groups.map(({ rank }) => filled(Uint8Array, length, (i) => value(rank, i)));
      await world.counted(
        (group, rank) => group.allReduce(xs[rank]!),
        (rank) => volumes.allReduce(length, 1, n, rank),
      );
      for (const x of xs) expect(Buffer.compare(x, want)).toBe(0);
    },
  );

  it.each(sample([5, 2000, 20_011, 300_001], n))(
    "rounds sums of %i floats the same way on all ranks, every time",
    async (length) => {
      const run = async () => {
        const xs = world.groups.map(({ rank }) => Float32Array.from({ length }, (_, i) => rough(rank, i)));
        await everywhere(world.groups, (group, rank) => group.allReduce(xs[rank]!));
        return xs;
      };
      const [first, second] = [await run(), await run()];
      for (const x of [...first, ...second]) expect(Buffer.compare(bytesOf(x), bytesOf(first[0]!))).toBe(0);
      for (let i = 0; i < length; i += 97) {
        const terms = world.groups.map(({ rank }) => rough(rank, i));
        const size = terms.reduce((sum, term) => sum + Math.abs(term), 0);
        const exact = terms.reduce((sum, term) => sum + term, 0);
        expect(Math.abs(first[0]![i]! - exact)).toBeLessThanOrEqual(n * 2 ** -24 * size);
      }
    },
  );

  it.each([
    ["few", (r: number) => (r === 1 ? 0 : 3 * r + 1)],
    ["many", (r: number) => (r === 1 ? 0 : 30_000 * r + 77)],
  ])("reduce-scatters parts of unequal lengths, %s elements", async (_, lengthOf) => {
    const lengths = world.groups.map(({ rank }) => lengthOf(rank));
    const parts = world.groups.map(({ rank }) =>
      lengths.map((length, r) => filled(Int32Array, length, (i) => value(rank, i + r))),
    );
    await world.counted(
      (group, rank) => group.reduceScatter(parts[rank]!),
      (rank) =>
        volumes.reduceScatter(
          lengths.map((length) => 4 * length),
          rank,
        ),
    );
    world.groups.forEach(({ rank }) => {
      const want = filled(Int32Array, lengths[rank]!, (i) => total(n, i + rank));
      expect(Buffer.compare(bytesOf(parts[rank]![rank]!), bytesOf(want))).toBe(0);
    });
  });

  it.skipIf(!dividesSums(n))(
    `takes the mean of floats as the rounded sum, divided once${skippedUnless(dividesSums(n), "it multiplies by 1/n before it adds")}`,
    async () => {
      for (const Type of [Float32Array, Float64Array])
        for (const length of [1, 50, 40_001]) {
          const make = () =>
            world.groups.map(({ rank }) => (Type as typeof Float64Array).from({ length }, (_, i) => rough(rank, i)));
          const [sums, means, scattered] = [make(), make(), make()];
          await everywhere(world.groups, (group, rank) => group.allReduce(sums[rank]!));
          await everywhere(world.groups, (group, rank) => group.allReduce(means[rank]!, "mean"));
          const want = (Type as typeof Float64Array).from(sums[0]!, (sum) => sum / n);
          for (const mean of means) expect(Buffer.compare(bytesOf(mean), bytesOf(want))).toBe(0);
          // Cut where the all-reduce cuts, so that the sums are the same.
          const cut = (x: Float64Array) =>
            world.groups.map(({ rank: r }) =>
              x.subarray(Math.floor((length * r) / n), Math.floor((length * (r + 1)) / n)),
            );
          await everywhere(world.groups, (group, rank) => group.reduceScatter(cut(scattered[rank]!), "mean"));
          for (const { rank } of world.groups)
            expect(Buffer.compare(bytesOf(cut(scattered[rank]!)[rank]!), bytesOf(cut(want)[rank]!))).toBe(0);
        }
      await expect(world.groups[0]!.allReduce(new Int32Array(1), "mean")).rejects.toThrow("i32 has no exact mean");
    },
  );

  it.skipIf(!keepsNaN)(
    `returns NaN from min and max where one rank has NaN${skippedUnless(keepsNaN, "the library decides what becomes of it")}`,
    async () => {
      await everywhere(world.groups, async (group, rank) => {
        for (const op of ["min", "max"] as const) {
          const x = Float32Array.of(rank === n - 1 ? Number.NaN : rank, rank);
          await group.allReduce(x, op);
          expect([...x]).toEqual([Number.NaN, op === "min" ? 0 : n - 1]);
        }
      });
    },
  );
}
