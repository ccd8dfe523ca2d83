/** Sums of fields, compared with the formulas of sum-of-fields.ts in float64. */
import { type Codec, f16, int8, l1, linf, qsgd } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { openExchange, StepRefusedError } from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { sumOfFields, sumOfFieldsCost } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const lengths = [0, 1, 63, 64, 65, 1000];

/** Multiples of 1/8 whose size grows with the rank, a few of them large, some 0: sums of magnitudes are exact. */
function value(rank: number, i: number): number {
  const h = (Math.imul(i + 7, 2654435761) ^ Math.imul(rank + 3, 40503)) >>> 0;
  const x = ((h >>> 8) % 33) - 16;
  return (((h >>> 20) % 29 === 0 ? 20 * x : x) * (1 + (rank % 4))) / 8;
}

const vector = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => value(rank, i));

const halfEven = (x: number) => {
  const below = Math.floor(x);
  const rest = x - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
};

/** The norms of a scale group, times the reach. */
const norms = {
  mean: (x: readonly number[]) => 2 * Math.fround(x.reduce((sum, v) => sum + Math.abs(v), 0) / x.length),
  largest: (x: readonly number[]) => Math.max(...x.map(Math.abs)),
};

/** The least fp32 u with s u ≥ reach. */
function unitOf(reach: number, s: number): number {
  if (reach === 0) return 0;
  const place = Math.max(2 ** (Math.floor(Math.log2(reach / s)) - 23), 2 ** -149);
  return Math.ceil(reach / s / place) * place;
}

/** Σ x as the ranks wrote it, for each scale group. */
function oracle(ranks: number, segments: readonly number[], bits: number, norm: keyof typeof norms): number[] {
  const s = 2 ** (bits - 1) - 1;
  let from = 0;
  return segments.flatMap((length) => {
    const parts = Array.from({ length: ranks }, (_, r) => Array.from({ length }, (_, i) => value(r, from + i)));
    from += length;
    if (length === 0) return [];
    const unit = unitOf(Math.max(...parts.map(norms[norm])), s);
    const q = (v: number) => (unit === 0 ? 0 : Math.max(-s, Math.min(s, halfEven(v / unit))));
    return parts[0]!.map((_, i) => Math.fround(parts.reduce((sum, x) => sum + q(x[i]!), 0) * unit) + 0);
  });
}

/** The sum, the same on every rank. */
async function summed(ranks: number, n: number, codec: Codec): Promise<number[]> {
  const all = await onRanks(ranks, async (group) => {
    const into = new Float32Array(n);
    await sumOfFields(group, vector(group.rank, n), { codec, into, seed: 3, step: 5 });
    return into;
  });
  for (const into of all) expect(into).toEqual(all[0]);
  return [...all[0]!];
}

const blocks = (n: number, block: number) =>
  Array.from({ length: Math.ceil(n / block) }, (_, b) => Math.min(block, n - b * block));

describe("the sum of fields", () => {
  it.each(worlds)("is the sum of whole numbers, times the unit that %i ranks share", async (ranks) => {
    for (const n of lengths) {
      for (const bits of n === 65 ? [2, 3, 4, 5, 6, 7, 8] : [5])
        expect(await summed(ranks, n, l1({ bits })), `${bits} bits`).toEqual(oracle(ranks, [n], bits, "mean"));
      expect(await summed(ranks, n, int8())).toEqual(oracle(ranks, [n], 8, "largest"));
      expect(await summed(ranks, n, int8({ block: 12 }))).toEqual(oracle(ranks, blocks(n, 12), 8, "largest"));
    }
  });

  it("shares a unit in each segment and each block, for any cuts into chunks", async () => {
    const segments = [0, 5, 0, 700, 1, 0, 294, 0];
    for (const ranks of [1, 3, 4, 9]) {
      expect(await summed(ranks, 1000, l1({ bits: 4, segments }))).toEqual(oracle(ranks, segments, 4, "mean"));
      expect(await summed(ranks, 1000, int8({ segments }))).toEqual(oracle(ranks, segments, 8, "largest"));
      expect(await summed(ranks, 1000, l1({ bits: 3, block: 36 }))).toEqual(oracle(ranks, blocks(1000, 36), 3, "mean"));
    }
  });

  it("is the same sum for long vectors", async () => {
    for (const codec of [l1({ bits: 3 }), int8({ block: 4096 })]) {
      const sum = await summed(5, 100_003, codec);
      const sizes = codec.name === "int8" ? blocks(100_003, 4096) : [100_003];
      const exact = oracle(5, sizes, codec.name === "int8" ? 8 : 3, codec.name === "int8" ? "largest" : "mean");
      expect(sum.findIndex((v, i) => v !== exact[i])).toBe(-1);
    }
  });

  it.each([
    { of: "linf", codec: linf({ bits: 3 }) as Codec, norm: norms.largest },
    { of: "linf in blocks", codec: linf({ bits: 2, block: 32 }) as Codec, norm: norms.largest },
    { of: "qsgd", codec: qsgd({ bits: 6 }) as Codec, norm: (x: readonly number[]) => Math.hypot(...x) },
  ])("has no bias with random rounding: $of", async ({ codec, norm }) => {
    const [n, ranks, steps] = [64, 4, 500];
    const s = 2 ** (codec.parameters.bits! - 1) - 1;
    const size = codec.parameters.block ?? n;
    const [mean, other] = await onRanks(ranks, async (group) => {
      const into = new Float32Array(n);
      for (let step = 0; step < steps; step++)
        await sumOfFields(group, vector(group.rank, n), { codec, into, scale: 1 / steps, seed: 9, step });
      return into;
    });
    expect(other).toEqual(mean);
    let worst = 0;
    for (let i = 0; i < n; i++) {
      const block = (r: number) => [...vector(r, n)].slice(i - (i % size), i - (i % size) + size);
      const unit = Math.max(...Array.from({ length: ranks }, (_, r) => norm(block(r)))) / s;
      const exact = Array.from({ length: ranks }, (_, r) => value(r, i));
      const p = exact.map((v) => Math.abs(v) / unit - Math.floor(Math.abs(v) / unit));
      const deviation = unit * Math.sqrt(p.reduce((sum, odds) => sum + odds * (1 - odds), 0) / steps);
      const away = Math.abs(mean![i]! - exact.reduce((sum, v) => sum + v, 0)) - 1e-4; // of 500 roundings to fp32
      worst = Math.max(worst, away / Math.max(deviation, 1e-9));
    }
    expect(worst).toBeLessThan(4.5);
  });

  it("draws different random numbers on every rank", async () => {
    const [codec, steps] = [linf({ bits: 2 }) as Codec, 200];
    const [sum] = await onRanks(4, async (group) => {
      const into = new Float32Array(64);
      const x = Float32Array.from({ length: 64 }, (_, i) => (i === 0 ? 1 : 0.25));
      for (let step = 0; step < steps; step++) await sumOfFields(group, x, { codec, into, seed: 9, step });
      return into;
    });
    // 800 draws of odds 1/4 an element. If all ranks drew the same numbers, the variance would be four times as large.
    const away = [...sum!.subarray(1)].map((v) => (v - steps) / Math.sqrt(4 * steps * 0.1875));
    expect(away.reduce((total, z) => total + z * z, 0) / away.length).toBeLessThan(2); // ± 0.18 about 1
  });

  it("has an error of at most half a unit for each rank, for any maxima of the ranks", async () => {
    const [n, ranks] = [500, 3];
    const codec = int8({ block: 100 });
    const sum = await summed(ranks, n, codec);
    const exact = Array.from({ length: n }, (_, i) => [0, 1, 2].reduce((total, r) => total + value(r, i), 0));
    for (let i = 0; i < n; i++) {
      const largest = (r: number) =>
        Math.max(...[...vector(r, n)].slice(i - (i % 100), i - (i % 100) + 100).map(Math.abs));
      const most = Math.max(...[0, 1, 2].map(largest));
      expect(Math.abs(sum[i]! - exact[i]!)).toBeLessThanOrEqual((ranks * most) / 254 + 1e-4);
    }
  });

  it("adds to the contents of `into`, times a scale, and keeps no memory", async () => {
    const expected = oracle(3, [100], 5, "mean");
    const got = await onRanks(3, async (group) => {
      const into = new Float32Array(100).fill(7);
      await sumOfFields(group, vector(group.rank, 100), { codec: l1({ bits: 5 }), into, scale: 0.5 });
      expect(scratchOf(group).live).toBe(0);
      return [...into];
    });
    for (const into of got) expect(into).toEqual(expected.map((v) => Math.fround(7 + Math.fround(v / 2))));
  });

  it("reaches the largest element although fp32 rounds units, also for denormals", async () => {
    const least = 2 ** -149;
    for (const most of [3e-45, 714 * least, 1e-38, 1, Math.fround(1 / 3), 1e30]) {
      const [got] = await onRanks(2, async (group) => {
        const into = new Float32Array(3);
        await sumOfFields(group, Float32Array.of(group.rank === 0 ? most : 0, 0, -most / 2), { codec: int8(), into });
        return into;
      });
      const bound = unitOf(most, 127) + most * 2 ** -20; // half a unit of each, and fp32
      expect(Math.abs(got![0]! - most)).toBeLessThanOrEqual(bound);
      expect(Math.abs(got![2]! + most)).toBeLessThanOrEqual(bound);
      expect(got![1]).toBe(0);
    }
  });

  it("refuses more ranks than a field can hold, and never overflows", async () => {
    expect(() => sumOfFieldsCost(64, 257, 0, int8())).not.toThrow();
    expect(() => sumOfFieldsCost(64, 258, 0, int8())).toThrow(
      "sumOfFields: 258 ranks of 8 bits sum up to 65790, and a field of 16 bits holds 65535: take fewer bits, or `sum` (in a recipe, another exchange.dense than int8).",
    );
    // All ranks have the largest level, so that a sum beyond its field would carry.
    const ends = await onRanks(17, async (group) => {
      const into = new Float32Array(65);
      await sumOfFields(group, new Float32Array(65).fill(127).fill(-127, 60), { codec: int8(), into });
      return into;
    });
    for (const sum of ends) expect(sum).toEqual(new Float32Array(65).fill(17 * 127).fill(-17 * 127, 60));
  });

  it("takes only codecs with units to agree on, equal lengths, and a seed for random rounding", async () => {
    for (const codec of [f16, l1({ bits: 4, unscaled: true }), linf({ bits: 3, levels: "logarithmic" }) as Codec])
      expect(() => sumOfFieldsCost(10, 2, 0, codec)).toThrow(
        /^sumOfFields: .* has no units that ranks can agree on; take l1/,
      );
    const messages = await onRanks(2, async (group) => {
      const outcomes = await Promise.allSettled([
        sumOfFields(group, new Float32Array(4), { codec: int8(), into: new Float32Array(3) }),
        sumOfFields(group, new Float32Array(4), { codec: linf({ bits: 3 }) as Codec, into: new Float32Array(4) }),
      ]);
      return [...outcomes.map((outcome) => String((outcome as PromiseRejectedResult).reason)), group.sent().messages];
    });
    for (const [length, draws, sent] of messages) {
      expect(length).toContain("sumOfFields: into has 3 floats, and must have 4, as x has.");
      expect(draws).toContain("sumOfFields: seed is undefined, and linf needs it to draw random numbers");
      expect(sent).toBe(0);
    }
  });

  it("stops all ranks together before any level is sent", async () => {
    const reasons = {
      "the gradient is not finite": Number.NaN,
      "the loss is not finite": 0,
      "a value is beyond what its codec can write": 3.4e38,
    };
    for (const ranks of [1, 2, 5])
      for (const [what, bad] of Object.entries(reasons)) {
        const outcomes = await onRanks(ranks, async (group) => {
          const refuses = group.rank >= ranks - 2; // two ranks, if there are two
          const x = vector(group.rank, 100);
          if (refuses) x.fill(bad, 90);
          const into = new Float32Array(100);
          const codec = l1({ bits: 8, block: 10 }); // twice the mean is beyond fp32
          const refusal = refuses && what.includes("loss") ? "the loss is not finite" : undefined;
          const error: unknown = await sumOfFields(group, x, { codec, into }, { refusal }).catch(
            (error: unknown) => error,
          );
          return { error, into, live: scratchOf(group).live };
        });
        for (const { error, into, live } of outcomes) {
          expect(error).toBeInstanceOf(StepRefusedError);
          expect((error as Error).message).toContain(`rank ${Math.max(0, ranks - 2)} refuses the step: ${what}`);
          expect(into).toEqual(new Float32Array(100));
          expect(live).toBe(0);
        }
      }
  });

  it("refuses a sum that may exceed fp32, with the same error on all ranks", async () => {
    const outcomes = await onRanks(3, async (group) => {
      const into = new Float32Array(8);
      return sumOfFields(group, new Float32Array(8).fill(2e38), { codec: int8(), into }).catch(
        (error: Error) => error.message,
      );
    });
    for (const message of outcomes)
      expect(message).toContain("the step is refused: a value is beyond what its codec can write");
  });

  it("travels with other sums of its round as one message, with the same result", async () => {
    // l1's sums have 5 bits, 15 bytes a chunk: so int8's wire after them begins at an odd byte.
    const codecs = [int8({ block: 16 }), l1({ bits: 3, segments: [40, 60] }), int8({ block: 8 })];
    const alone = await Promise.all(codecs.map((codec) => summed(4, 100, codec)));
    const together = await onRanks(4, async (group) => {
      const exchange = openExchange(group);
      const sums = codecs.map(() => new Float32Array(100));
      await Promise.all(
        codecs.map((codec, i) => exchange.sumOfFields(vector(group.rank, 100), { codec, into: sums[i]! })),
      );
      return { sums, messages: group.sent().messages };
    });
    for (const { sums, messages } of together) {
      expect(sums.map((sum) => [...sum])).toEqual(alone);
      expect(messages).toBe(3 + 2 * 3); // one agreement, and one message there and back
    }
  });

  it("sends the bits of its closed form", () => {
    const n = 8_000_000;
    const bits = (cost: { bytes: number }) => (8 * cost.bytes) / n / (7 / 8);
    expect(bits(sumOfFieldsCost(n, 8, 0, l1({ bits: 5 })))).toBeCloseTo(13, 3);
    expect(bits(sumOfFieldsCost(n, 8, 0, int8()))).toBeCloseTo(24, 3);
  });
});
