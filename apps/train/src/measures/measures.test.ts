import { loopback } from "@terse/collectives";
import { PackedBits } from "@terse/exchange";
import { lionCub, Optimizer } from "@terse/optimizers";
import { Arena, fromTypedArray, Linear, scope } from "@terse/tensor";
import { describe, expect, it, vi } from "vitest";
import { measureMomenta, measureVotes } from "./agreement.ts";
import type { Measured } from "./measured.ts";
import { gatherRanks } from "./ranks.ts";
import { lengthOfUnion, StepMeter } from "./step-meter.ts";
import { VoteSample } from "./vote-sample.ts";

function onRanks<T>(size: number, task: (group: ReturnType<typeof loopback>[number]) => Promise<T>): Promise<T[]> {
  return Promise.all(
    loopback(size).map(async (group) => {
      await using closing = group;
      return await task(closing);
    }),
  );
}

const bits = (words: number, isPlus: (i: number) => boolean) =>
  new PackedBits(64 * words, undefined, ({ signs }) => {
    signs.fill(0);
    for (let i = 0; i < 64 * words; i++) if (isPlus(i)) signs[i >> 3]! |= 1 << (i & 7);
  });

const sampleOf = (u: PackedBits) => {
  const sample = new VoteSample();
  u.fill();
  sample.add(0, u);
  return sample;
};

describe("how far ranks agree", () => {
  it("is counted element by element, in votes and in momenta", async () => {
    // c = i mod 5 of the four ranks vote plus on element i. So a fifth are ties, and 6, 3, 2, 3 and 6 of 6 pairs agree.
    const isPlus = (i: number, rank: number) => rank < i % 5;
    const measured = await onRanks(4, async (group) => {
      const votes = sampleOf(bits(5, (i) => isPlus(i, group.rank)));
      const m = Float32Array.from({ length: 60 }, (_, i) => (isPlus(i, group.rank) ? 3 : -1));
      const momenta = [fromTypedArray(m.subarray(0, 20)), fromTypedArray(m.subarray(20))];
      return [await measureVotes(group, votes), await measureMomenta(group, momenta)];
    });
    for (const [{ model: votes }, { model: ofMomenta }] of measured as [Measured, Measured][]) {
      const each = { ...votes, ...ofMomenta };
      expect(each["votes/chance_ties"]).toBeCloseTo(6 / 16, 12);
      expect(each["votes/elements"]).toBe(320);
      expect(each["votes/ties"]).toBeCloseTo(1 / 5, 12);
      expect(each["votes/agreement"]).toBeCloseTo(20 / 30, 12);
      expect(each["momentum/agreement"]).toBeCloseTo(20 / 30, 6);
      // m̄ = c − 1, with variance c (4 − c) over the ranks: means over c of 0, 3, 4, 3, 0, and of m̄² = 1, 0, 1, 4, 9
      expect(each["momentum/drift"]).toBeCloseTo(Math.sqrt(2 / 3), 6);
      expect(each["momentum/elements"]).toBe(60);
    }
  });

  it("is a drift of 0 where momenta are the same, and nothing on a single rank or without momenta", async () => {
    const momenta = () => [fromTypedArray(Float32Array.of(1, -2, 4))];
    const [same] = await onRanks(2, (group) => measureMomenta(group, momenta()));
    expect(same!.model).toMatchObject({ "momentum/drift": 0, "momentum/agreement": 1 });
    const sizes = same!.model["momentum/quantiles"] as number[];
    expect(sizes.map((size) => size * (7 / 3))).toEqual([2, 4, 4, 4, 4].map((size) => expect.closeTo(size, 6)));
    const nothing = { model: {} };
    expect(await onRanks(1, (group) => measureMomenta(group, momenta()))).toEqual([nothing]);
    expect(await onRanks(2, (group) => measureMomenta(group, []))).toEqual([nothing, nothing]);
    expect(await onRanks(2, (group) => measureVotes(group, undefined))).toEqual([nothing, nothing]);
  });

  it("is sampled from whole words, at even distances, and never more than 8192 elements", () => {
    const sample = sampleOf(bits(1000, (i) => (i >> 6) % 8 === 0)); // every eighth word is all plus
    sample.add(
      1,
      bits(1, () => true),
    );
    const plus = sample.plus();
    expect(plus.length).toBeLessThanOrEqual(8192);
    expect(plus.length).toBeGreaterThan(4096);
    expect(plus.length % 64).toBe(0);
    expect(plus.subarray(0, 64)).toEqual(new Float32Array(64).fill(1));
  });
});

it("knows of every rank, on rank 0", async () => {
  const seen = await onRanks(3, (group) =>
    gatherRanks(group, { loss: group.rank, compute: group.rank, exposed: 2 - group.rank }),
  );
  expect(seen.slice(1)).toEqual([undefined, undefined]);
  expect(seen[0]).toMatchObject({
    loss: 1,
    measured: {
      "ranks/compute_seconds": [0, 1, 2],
      "ranks/exposed_seconds": [2, 1, 0],
      skew_seconds: 2,
      slowest_rank: 2,
    },
  });
  for (const bytes of seen[0]!.measured["ranks/resident_bytes"]!) expect(bytes).toBeGreaterThan(2 ** 20);
});

it("leaves memory out where the system does not say how much a process has", async () => {
  using rss = vi.spyOn(process.memoryUsage, "rss").mockImplementationOnce(() => {
    throw new Error("ENOENT: no such file or directory, uv_resident_set_memory");
  });
  const [seen] = await onRanks(2, (group) => gatherRanks(group, { loss: 1, compute: 1, exposed: 0 }));
  expect(rss).toHaveBeenCalledTimes(2);
  expect(seen!.measured).toEqual({
    "ranks/compute_seconds": [1, 1],
    "ranks/exposed_seconds": [0, 0],
    skew_seconds: 0,
    slowest_rank: 0,
  });
});

describe("the parts of a step", () => {
  it("count the time in which the wire was busy once, however many collectives were under way", () => {
    expect(lengthOfUnion([])).toBe(0);
    expect(
      lengthOfUnion([
        [5, 6],
        [0, 1],
        [2, 7],
        [3, 4],
        [9, 10],
      ]),
    ).toBe(7);
  });

  it("are all seen in a step of votes, and none is longer than the step", async () => {
    await onRanks(2, async (group) =>
      scope(async () => {
        const layer = new Linear(256, 256);
        const arena = new Arena(layer);
        await using optimizer = new Optimizer(arena, group, { algorithm: lionCub(), compareEvery: 0 });
        const meter = new StepMeter();
        optimizer.watch = meter;
        for (let step = 0; step < 2; step++) {
          meter.begin(step, { samplesVotes: true });
          const x = await meter.time("data", () => fromTypedArray(new Float32Array(1024).fill(1), [4, 256]));
          const loss = await meter.time("forward", () => layer.forward(x).square().mean());
          await meter.time("backward", () => loss.backward());
          await optimizer.step({ lr: 0.1 });
          meter.end();
        }
        expect(meter.votes!.plus().length).toBeGreaterThan(0);
        const step = meter.seconds / 2;
        for (const seconds of Object.values(meter.take(2))) {
          expect(seconds).toBeGreaterThan(0);
          expect(seconds).toBeLessThan(step);
        }
        expect(meter.take(1)).toMatchObject({ wire: 0, forward: 0 });
      }),
    );
  });
});
