/** Dense means, compared with an oracle in float64 that rounds to 16 bits as IEEE 754 defines it. */
import { type Group, loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type DenseType, dense, openExchange, StepRefusedError } from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { meanIn } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

const lengths = [0, 1, 63, 64, 65, 1000, 100_003];
const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const formats = { bf16: { fraction: 7, least: -126 }, f16: { fraction: 10, least: -14 } } as const;

/** To the nearest multiple of the unit in the last place, halves to even. */
function rounded(x: number, { fraction, least }: { fraction: number; least: number }): number {
  if (x === 0) return 0;
  const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(x))), least) - fraction);
  const q = x / unit;
  const down = Math.floor(q);
  const up = q - down > 0.5 || (q - down === 0.5 && down % 2 !== 0);
  return (up ? down + 1 : down) * unit;
}

/** Values of several sizes, most of them between two numbers of 16 bits. */
const value = (rank: number, i: number) => Math.fround(Math.sin(i * 12.9898 + rank * 78.233) * 10 ** ((i % 7) - 3));

describe.each(["bf16", "f16"] as const)("a mean in %s", (type) => {
  it.each(worlds)(
    "rounds once on the way up, adds in f32, and rounds once on the way down, on %i ranks",
    async (ranks) => {
      for (const n of lengths) {
        const inverse = Math.fround(1 / ranks);
        const expected = Float32Array.from({ length: n }, (_, i) => {
          if (ranks === 1) return value(0, i);
          let sum = 0;
          for (let r = 0; r < ranks; r++)
            sum = Math.fround(sum + Math.fround(rounded(value(r, i), formats[type]) * inverse));
          return rounded(sum, formats[type]);
        });
        const got = await onRanks(ranks, async (group) => {
          const x = Float32Array.from({ length: n }, (_, i) => value(group.rank, i));
          await meanIn(type, group, x);
          return x;
        });
        for (const x of got) expect(x.every((v, i) => v === expected[i])).toBe(true);
      }
    },
  );

  it.each([
    ["is not finite", Number.NaN, "the gradient is not finite"],
    ["does not fit", type === "f16" ? 1e5 : 3.4e38, "a value is beyond what its codec can write"],
  ])("is refused on every rank if a number %s, and keeps no memory", async (_, bad, reason) => {
    const outcomes = await onRanks(3, async (group) => {
      const x = new Float32Array(1000).fill(1);
      if (group.rank === 1) x[700] = bad;
      const error = await meanIn(type, group, x).catch((error: unknown) => error);
      return { error, live: scratchOf(group).live };
    });
    for (const { error, live } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect((error as Error).message).toContain(`rank 1 refuses the step: ${reason}`);
      expect(live).toBe(0);
    }
  });

  it("throws the reason of a refusal on every rank", async () => {
    const errors = await onRanks(3, async (group) => {
      const exchange = openExchange(group, { schemes: { means: dense(type) } });
      if (group.rank === 2) exchange.refuse("the loss is not finite");
      const x = new Float32Array(100).fill(group.rank === 2 ? Number.NaN : 1);
      return exchange.mean(x).catch((error: unknown) => error);
    });
    for (const error of errors)
      expect((error as Error).message).toContain("rank 2 refuses the step: the loss is not finite");
  });
});

describe("a mean in int8", () => {
  /** The least fp32 u with 127 u ≥ the largest magnitude of the block on any rank. */
  const unitOf = (ranks: number, n: number, i: number) => {
    const [begin, end] = [i - (i % 512), Math.min(n, i - (i % 512) + 512)];
    let most = 0;
    for (let r = 0; r < ranks; r++) for (let k = begin; k < end; k++) most = Math.max(most, Math.abs(value(r, k)));
    const place = 2 ** (Math.floor(Math.log2(most / 127)) - 23);
    return Math.ceil(most / 127 / place) * place;
  };
  const nearest = (x: number) => {
    const down = Math.floor(x);
    return x - down > 0.5 || (x - down === 0.5 && down % 2 !== 0) ? down + 1 : down;
  };

  it.each(worlds)("rounds once, with a unit that all ranks share, and adds exactly, on %i ranks", async (ranks) => {
    for (const n of lengths.filter((length) => length <= 1000)) {
      const inverse = Math.fround(1 / ranks);
      const expected = Float32Array.from({ length: n }, (_, i) => {
        if (ranks === 1) return value(0, i);
        const unit = unitOf(ranks, n, i);
        let sum = 0;
        for (let r = 0; r < ranks; r++) sum += nearest(value(r, i) / unit);
        return Math.fround(Math.fround(sum * unit) * inverse) + 0;
      });
      const got = await onRanks(ranks, async (group) => {
        const x = Float32Array.from({ length: n }, (_, i) => value(group.rank, i));
        await meanIn("int8", group, x);
        return x;
      });
      for (const x of got) expect(x).toEqual(expected);
    }
  });

  it("is refused on all ranks together, and keeps no memory", async () => {
    for (const [bad, refusal, reason] of [
      [Number.NaN, undefined, "the gradient is not finite"],
      [1, "the loss is not finite", "the loss is not finite"],
    ] as const) {
      const outcomes = await onRanks(3, async (group) => {
        const x = new Float32Array(1000).fill(1);
        if (group.rank === 1) x[700] = bad;
        const mine = group.rank === 1 ? refusal : undefined;
        const error = await meanIn("int8", group, x, { refusal: mine }).catch((error: unknown) => error);
        return { error, live: scratchOf(group).live };
      });
      for (const { error, live } of outcomes) {
        expect((error as Error).message).toContain(`rank 1 refuses the step: ${reason}`);
        expect(live).toBe(0);
      }
    }
  });

  it("travels in buckets that keep one order on all ranks, even if some ranks are slow", async () => {
    const sums = await onRanks(3, async (group) => {
      const gather = (await group.split(0))!;
      const exchanges = [0, 1, 2].map(() => openExchange(group, { down: gather, schemes: { means: dense("int8") } }));
      await new Promise((next) => setTimeout(next, 7 * group.rank));
      const means = await Promise.all(
        exchanges.map(async (exchange, k) => {
          const x = [700, 3].map((n) => Float32Array.from({ length: n }, (_, i) => value(group.rank, i + k)));
          await Promise.all(x.map((vector) => exchange.mean(vector)));
          return x.map((vector) => [...vector]);
        }),
      );
      await gather.close();
      return means;
    });
    for (const means of sums) expect(means).toEqual(sums[0]);
    expect(sums[0]![2]![0]).not.toEqual(sums[0]![1]![0]);
  });
});

describe.each(["f32", "bf16", "f16", "int8"] as const)("the closed form of a mean in %s", (type: DenseType) => {
  it.each(worlds)("equals the counters of %i ranks", async (ranks) => {
    for (const n of lengths) {
      const groups = loopback(ranks);
      await Promise.all(groups.map((group: Group) => meanIn(type, group, new Float32Array(n))));
      for (const group of groups) {
        const { bytes, messages } = group.sent();
        const { peak: peakBytes, live } = scratchOf(group);
        expect({ bytes, messages, peakBytes }, `n = ${n}`).toEqual(dense(type).cost([n], ranks, group.rank));
        expect(live).toBe(0);
      }
      await Promise.all(groups.map((group) => group.close()));
    }
  });
});

// A GPT-2 of 124 M on one GPU spent 100 of 178 ms a step on copies to the host and back.
it.each(["f32", "bf16", "f16", "int8"] as const)("of one rank in %s does not touch a GPU's memory", async (type) => {
  const [group] = loopback(1);
  const onGpu = { pointer: 64n, length: 1000, dtype: "f32", device: "cuda:0" } as const; // no memory: a copy would fail
  await meanIn(type, group!, onGpu);
  await group!.close();
});

it("names the types if one does not exist", () => {
  expect(() => dense("f8" as never)).toThrow("choose f32, bf16, f16, int8");
});
