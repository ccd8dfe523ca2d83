import { type Codec, int8, l1, linf, ternary } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { openExchange, type PackedBits, StepRefusedError } from "../index.ts";
import { bytesOfRound } from "../messages.ts";
import { standardSchemes } from "../schemes.ts";
import {
  signOfLevels,
  signOfLevelsCost,
  sumOfLevels,
  sumOfLevelsCost,
  sumOfLevelsDirect,
  sumOfLevelsDirectCost,
} from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const lengths = [0, 1, 63, 64, 65, 1000];

/** Small multiples of 1/8, a few of them large, some 0: sums of magnitudes are exact. */
function value(rank: number, i: number): number {
  const h = (Math.imul(i + 7, 2654435761) ^ Math.imul(rank + 3, 40503)) >>> 0;
  const x = ((h >>> 8) % 33) - 16;
  return ((h >>> 20) % 29 === 0 ? 20 * x : x) / 8;
}

const vector = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => value(rank, i));

const halfEven = (x: number) => {
  const below = Math.floor(x);
  const rest = x - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
};

/** Q₁ of the paper, §4.2, with M the number of elements, whose mean is rounded to fp32 as the wire has it. */
function quantised(x: readonly number[], s: number): number[] {
  const mean = Math.fround(x.reduce((sum, v) => sum + Math.abs(v), 0) / x.length);
  return x.map((v) => (mean === 0 ? 0 : Math.max(-s, Math.min(s, halfEven((v * s) / (2 * mean)))) + 0));
}

function oracle(ranks: number, n: number, s: number, segments = [n]): number[] {
  const sum = new Array<number>(n).fill(0);
  for (let r = 0; r < ranks; r++) {
    let from = 0;
    for (const length of segments) {
      const q = quantised([...vector(r, n).subarray(from, from + length)], s);
      for (const [i, level] of q.entries()) sum[from + i]! += level;
      from += length;
    }
  }
  return sum;
}

const unpacked = (bits: PackedBits) =>
  Array.from({ length: bits.length }, (_, i) => (bits.wire[i >> 3]! >> (i & 7)) & 1);

/** The sums in all three ways, on every rank. */
function threeWays(ranks: number, n: number, codec: Codec) {
  return onRanks(ranks, async (group) => {
    const [direct, owners] = [new Float32Array(n), new Float32Array(n)];
    await sumOfLevelsDirect(group, vector(group.rank, n), { codec, into: direct });
    await sumOfLevels(group, vector(group.rank, n), { codec, into: owners });
    using sign = await signOfLevels(group, vector(group.rank, n), { codec });
    const plus = unpacked(sign.plus);
    return {
      direct: [...direct],
      owners: [...owners],
      sign: unpacked(sign.nonzero).map((b, i) => b * (2 * plus[i]! - 1) + 0),
    };
  });
}

describe("the sum of signs with exact zeros", () => {
  it.each([1, 2, 3, 6, 9])("is exact, and so is its sign, on %i ranks", async (ranks) => {
    for (const n of [0, 1, 64, 65, 1000]) {
      const wanted = Array.from({ length: n }, (_, i) =>
        Array.from({ length: ranks }, (_, r) => Math.sign(value(r, i))).reduce((a, b) => a + b, 0),
      );
      const codec = ternary as Codec;
      const got = await onRanks(ranks, async (group) => {
        const into = new Float32Array(n);
        await sumOfLevels(group, vector(group.rank, n), { codec, into });
        using sign = await signOfLevels(group, vector(group.rank, n), { codec });
        const plus = unpacked(sign.plus);
        return { into: [...into], sign: unpacked(sign.nonzero).map((b, i) => b * (2 * plus[i]! - 1) + 0) };
      });
      for (const { into, sign } of got) {
        expect(into).toEqual(wanted);
        expect(sign).toEqual(wanted.map(Math.sign));
      }
    }
  });

  it("cannot be formed where the wires lie", async () => {
    await onRanks(1, async (group) => {
      const direct = sumOfLevelsDirect(group, vector(0, 8), { codec: ternary as Codec, into: new Float32Array(8) });
      await expect(direct).rejects.toThrow(/cannot be summed as whole numbers/);
    });
  });
});

describe("the sum of levels", () => {
  it.each(worlds)("is exact with as many levels as leave it in 8 bits, s = ⌊127/P⌋, on %i ranks", async (ranks) => {
    const side = Math.floor(127 / ranks);
    const codec = l1({ bits: Math.ceil(Math.log2(2 * side + 1)), side, unscaled: true });
    for (const n of [65, 1000]) {
      const wanted = oracle(ranks, n, side);
      for (const { direct, owners, sign } of await threeWays(ranks, n, codec)) {
        expect(direct).toEqual(wanted);
        expect(owners).toEqual(wanted);
        expect(sign).toEqual(wanted.map(Math.sign));
      }
      // A byte for each element, and the notes.
      expect(sumOfLevelsDirectCost(n, ranks, 0, codec).peakBytes).toBe(n + ranks);
    }
  });

  it("is the quantiser of Lion Cub's paper", async () => {
    const [q] = await onRanks(1, async (group) => {
      const into = new Float32Array(8);
      const x = Float32Array.of(0, 0.01, -0.02, 0.03, -0.5, 1, -0.04, 0.05);
      await sumOfLevels(group, x, { codec: l1({ bits: 5, unscaled: true }), into });
      return [...into];
    });
    expect(q).toEqual([0, 0, -1, 1, -15, 15, -1, 2]);
  });

  it.each(worlds)("is exact, and the same in all three ways, on %i ranks", async (ranks) => {
    for (const bits of [2, 3, 4, 5, 6, 7, 8]) {
      for (const n of bits === 5 ? lengths : [65, 1000]) {
        const sum = oracle(ranks, n, 2 ** (bits - 1) - 1);
        for (const { direct, owners, sign } of await threeWays(ranks, n, l1({ bits, unscaled: true }))) {
          expect(direct).toEqual(sum);
          expect(owners).toEqual(sum);
          expect(sign).toEqual(sum.map((v) => Math.sign(v)));
        }
      }
    }
  });

  it("has a scale for each segment and each block", async () => {
    for (const ranks of [1, 3, 4]) {
      const segments = [5, 0, 700, 1, 294];
      const [bySegment] = await threeWays(ranks, 1000, l1({ bits: 4, unscaled: true, segments }));
      expect(bySegment!.owners).toEqual(oracle(ranks, 1000, 7, segments));
      expect(bySegment!.direct).toEqual(bySegment!.owners);
      const blocks = [...new Array<number>(27).fill(36), 28];
      const [byBlock] = await threeWays(ranks, 1000, l1({ bits: 4, unscaled: true, block: 36 }));
      expect(byBlock!.owners).toEqual(oracle(ranks, 1000, 7, blocks));
      expect(byBlock!.direct).toEqual(byBlock!.owners);
    }
  });

  it("adds to the contents of `into`, times a scale", async () => {
    const sum = oracle(3, 100, 15);
    const got = await onRanks(3, async (group) => {
      const [direct, owners] = [new Float32Array(100).fill(7), new Float32Array(100).fill(7)];
      const codec = l1({ bits: 5, unscaled: true });
      await sumOfLevelsDirect(group, vector(group.rank, 100), { codec, into: direct, scale: 0.5 });
      await sumOfLevels(group, vector(group.rank, 100), { codec, into: owners, scale: 0.5 });
      return [[...direct], [...owners]];
    });
    for (const ways of got) for (const way of ways) expect(way).toEqual(sum.map((v) => 7 + v / 2));
  });

  it("is formed for all vectors of a round together where the wires lie, by one all-reduce for each size of their fields", async () => {
    const of = [
      { n: 65, codec: l1({ bits: 3, unscaled: true }) as Codec }, // bytes
      { n: 33, codec: l1({ bits: 7, unscaled: true }) as Codec }, // 4 · 127 needs 16 bits
      { n: 7, codec: l1({ bits: 3, unscaled: true, block: 4 }) as Codec },
      { n: 1, codec: l1({ bits: 7, unscaled: true }) as Codec },
    ];
    await onRanks(4, async (group) => {
      const alone = of.map(({ n }) => new Float32Array(n));
      for (const [i, { n, codec }] of of.entries())
        await sumOfLevelsDirect(group, vector(group.rank, n), { codec, into: alone[i]! });
      const before = group.sent();
      const exchange = openExchange(group);
      const together = of.map(({ n }) => new Float32Array(n));
      const request = (i: number, x = vector(group.rank, of[i]!.n)) =>
        exchange.sumOfLevelsDirect(x, { codec: of[i]!.codec, into: together[i]! });
      await Promise.all(of.map((_, i) => request(i)));
      expect(together).toEqual(alone);
      const { bytes, messages } = group.sent();
      expect(messages - before.messages).toBe(2 * 3);
      expect(bytes - before.bytes).toBe(
        bytesOfRound(
          of.map((each) => ({ kind: "sumOfLevelsDirect", ...each })),
          4,
          group.rank,
          standardSchemes,
        ),
      );
      expect(bytes - before.bytes).toBe(3 * (65 + 7 + 4 + 2 * (33 + 1 + 4)));

      const bad = group.rank === 2 ? new Float32Array(7).fill(Number.NaN) : undefined;
      const outcomes = await Promise.allSettled([request(0), request(1), request(2, bad)]);
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({ status: "rejected", reason: expect.any(StepRefusedError) });
    });
  });

  it("draws different random numbers on every rank: the mean of many sums is the sum", async () => {
    const codec = linf({ bits: 2, unscaled: true }) as Codec;
    const steps = 400;
    const [sum] = await onRanks(4, async (group) => {
      const into = new Float32Array(64);
      const x = Float32Array.from({ length: 64 }, (_, i) => (i === 0 ? 1 : 0.25));
      for (let step = 0; step < steps; step++) await sumOfLevels(group, x, { codec, into, seed: 9, step });
      return into;
    });
    // 1600 draws of odds 1/4 an element: ± 17.3. If all ranks drew the same numbers: ± 34.6.
    const away = sum!.subarray(1).map((v) => (v - 400) / Math.sqrt(4 * steps * 0.1875));
    expect(sum![0]).toBe(4 * steps);
    expect(Math.max(...away.map(Math.abs))).toBeLessThan(4.5);
    const variance = away.reduce((total, z) => total + z * z, 0) / away.length;
    expect(variance).toBeLessThan(2); // ± 0.18 about 1
  });

  it("refuses more ranks than its fields can hold, and never overflows", async () => {
    const codec = (bits: number) => l1({ bits, unscaled: true });
    expect(() => sumOfLevelsDirectCost(64, 257, 0, codec(8))).not.toThrow();
    expect(() => sumOfLevelsDirectCost(64, 258, 0, codec(8))).toThrow(
      /258 ranks of 8 bits sum up to 65790, and a field of 16 bits holds 65535/,
    );
    expect(() => sumOfLevelsCost(64, 16, 0, codec(8))).not.toThrow();
    expect(() => sumOfLevelsCost(64, 17, 0, codec(8))).toThrow(
      "sumOfLevels: 17 ranks of 8 bits sum up to ±2159, and f16 holds whole numbers up to 2048: take fewer bits, or the direct sum.",
    );
    const n = 65;
    const results = await onRanks(17, async (group) => {
      const options = { codec: codec(8), into: new Float32Array(n) };
      const refused = await sumOfLevels(group, vector(0, n), options).catch((error: Error) => error.message);
      await sumOfLevelsDirect(group, vector(0, n), options);
      return { refused, sum: [...options.into] };
    });
    for (const { refused, sum } of results) {
      expect(refused).toContain("17 ranks of 8 bits");
      expect(sum).toEqual(quantised([...vector(0, n)], 127).map((q) => 17 * q));
    }
  });

  it("takes only codecs whose levels can be summed", async () => {
    for (const codec of [int8(), l1({ bits: 4 })])
      expect(() => signOfLevelsCost(10, 2, 0, codec)).toThrow(
        /cannot be summed as whole numbers; take l1 or linf with unscaled/,
      );
  });

  it("stops all ranks together if one has a NaN or refuses, in all three ways", async () => {
    const codec = l1({ bits: 8, unscaled: true });
    for (const ranks of [1, 2, 5])
      for (const way of [sumOfLevelsDirect, sumOfLevels, signOfLevels])
        for (const what of ["gradient", "loss"]) {
          const outcomes = await onRanks(ranks, async (group) => {
            const x = vector(group.rank, 100);
            const bad = group.rank === ranks - 1;
            if (bad && what === "gradient") x[99] = Number.POSITIVE_INFINITY;
            const into = new Float32Array(100);
            const refusal = bad && what === "loss" ? "the loss is not finite" : undefined;
            const error: unknown = await way(group, x, { codec, into }, { refusal }).catch((error: unknown) => error);
            return { error, into };
          });
          for (const { error, into } of outcomes) {
            expect(error).toBeInstanceOf(StepRefusedError);
            expect((error as Error).message).toContain(`rank ${ranks - 1} refuses the step: the ${what} is not finite`);
            expect(into).toEqual(new Float32Array(100));
          }
        }
  });

  it("sends fewer bits than the direct sum", () => {
    const n = 8_000_000;
    const bits = (cost: { bytes: number }) => (8 * cost.bytes) / n / (7 / 8);
    const codec = l1({ bits: 5, unscaled: true });
    expect(bits(sumOfLevelsDirectCost(n, 8, 0, codec))).toBeCloseTo(16, 3);
    expect(bits(sumOfLevelsCost(n, 8, 0, codec))).toBeCloseTo(13, 3);
    expect(bits(signOfLevelsCost(n, 8, 0, codec))).toBeCloseTo(7, 3);
  });
});
