import { binMeans, type Codec, dctTopK, f16, int8, l1, linf, qsgd, scaledSign, terngrad, topK } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { dense, openExchange, ownedElements, ownedRange, StepRefusedError } from "../index.ts";
import { meanErrorCompensated, meanErrorCompensatedCost } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

/** Distinct values between −1 and 1, none near 0. */
function value(rank: number, step: number, i: number): number {
  const x = Math.sin(i * 12.9898 + rank * 78.233 + step * 37.719) * 43758.5453;
  const fraction = x - Math.floor(x);
  return Math.fround(fraction < 0.5 ? -1 + 1.8 * fraction : -0.8 + 1.8 * fraction);
}

const vector = (rank: number, step: number, n: number) =>
  Float32Array.from({ length: n }, (_, i) => value(rank, step, i));
const rms = (x: readonly number[]) => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length);
const norm = (x: ArrayLike<number>) => Math.sqrt(Array.from(x).reduce((sum, v) => sum + v * v, 0));
const signs = (x: ArrayLike<number>) => Array.from(x, (v) => (v < 0 ? "-" : "+")).join("");
const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const lengths = [0, 1, 63, 64, 65, 1000];

describe("the error-compensated mean", () => {
  // DeepSpeed does not pad 16 elements. It pads 10 to 16, and its scales shrink by √(10/16): scaled-sign.test.ts has
  // its numbers, with pads that are sent. Here no pad is sent, and scales are over real elements (the test below).
  it("gives DeepSpeed's scales, signs and errors for two steps on two ranks", async () => {
    const results = await onRanks(2, async (group) => {
      const x = Float32Array.from({ length: 16 }, (_, k) => Math.sin(k + 1 + 0.5 * group.rank));
      const [workerError, serverError] = [new Float32Array(16), new Float32Array(8)];
      const steps = [];
      for (let step = 0; step < 2; step++) {
        const into = new Float32Array(16);
        await meanErrorCompensated(group, x, { into, workerError, serverError });
        steps.push({ into, e: norm(workerError), f: norm(serverError) });
      }
      return steps;
    });
    const expected = [
      {
        scales: [0.61362696, 0.6627913],
        signs: "++---+++----+++-",
        e: [1.12984865, 1.33867742],
        f: [0.89359049, 0.67028745],
      },
      {
        scales: [0.86332479, 0.81533844],
        signs: "+++---+++---+++-",
        e: [1.84443197, 1.51279667],
        f: [0.36248736, 1.51207044],
      },
    ];
    for (const [rank, steps] of results.entries())
      for (const [t, { into, e, f }] of steps.entries()) {
        expect(signs(into)).toBe(expected[t]!.signs);
        for (const [i, v] of into.entries()) expect(Math.abs(v)).toBeCloseTo(expected[t]!.scales[i >> 3]!, 6);
        expect(e).toBeCloseTo(expected[t]!.e[rank]!, 6);
        expect(f).toBeCloseTo(expected[t]!.f[rank]!, 6);
      }
  });

  /** Algorithm 1 of 1-bit Adam in float64: each rank's error, each owner's error, and the common result. */
  function oracle(x: number[][], e: number[][], f: number[], starts: readonly number[]) {
    const P = x.length;
    const sent = x.map((of, r) => {
      const v = of.map((xi, i) => xi + e[r]![i]!);
      const scale = rms(v);
      return { v, a: v.map((vi) => (vi >= 0 ? scale : -scale)) };
    });
    if (P === 1) return { out: sent[0]!.a, e: [sent[0]!.v.map((vi, i) => vi - sent[0]!.a[i]!)], f };
    const v = f.map((fi, i) => sent.reduce((sum, { a }) => sum + a[i]! / P, fi));
    const out = v.slice();
    for (let r = 0; r < P; r++) {
      const chunk = v.slice(starts[r], starts[r + 1]);
      const scale = rms(chunk);
      for (let i = starts[r]!; i < starts[r + 1]!; i++) out[i] = v[i]! >= 0 ? scale : -scale;
    }
    return { out, e: sent.map(({ v, a }) => v.map((vi, i) => vi - a[i]!)), f: v.map((vi, i) => vi - out[i]!) };
  }

  it.each(worlds)("is Algorithm 1 of 1-bit Adam written in float64, on %i ranks", async (ranks) => {
    for (const n of ranks === 3 ? [...lengths, 100_003] : lengths) {
      const owned = Array.from({ length: ranks }, (_, r) => ownedElements(n, ranks, r));
      const starts = [0, ...owned.map((_, r) => owned.slice(0, r + 1).reduce((a, b) => a + b, 0))];
      // Owners' errors so large, compared with the ranks' scales, that no sum comes near 0, where fp32 could have the
      // other sign.
      const before = Float32Array.from({ length: n }, (_, i) => 3 * value(77, 0, i) + Math.sign(value(77, 0, i)));
      const got = await onRanks(ranks, async (group) => {
        const into = new Float32Array(n);
        const workerError = vector(group.rank, 5, n).map((v) => v / 16);
        const serverError = before.slice(starts[group.rank]!, ranks === 1 ? 0 : starts[group.rank + 1]!);
        await meanErrorCompensated(group, vector(group.rank, 0, n), { into, workerError, serverError });
        return { into, workerError, serverError };
      });
      const all = (of: (r: number) => ArrayLike<number>) => Array.from({ length: ranks }, (_, r) => Array.from(of(r)));
      const expected = oracle(
        all((r) => vector(r, 0, n)),
        all((r) => vector(r, 5, n).map((v) => v / 16)),
        Array.from(before),
        starts,
      );
      for (const [r, { into, workerError, serverError }] of got.entries()) {
        expect(into).toEqual(got[0]!.into);
        expect(worst(into, expected.out)).toBeLessThan(2e-6);
        expect(worst(workerError, expected.e[r]!)).toBeLessThan(1e-6);
        if (ranks > 1) expect(worst(serverError, expected.f.slice(starts[r], starts[r + 1]))).toBeLessThan(2e-6);
      }
    }
  });

  it("takes wires that the ranks have written, and gives the mean's wires, with the same bits", async () => {
    const n = 1000;
    const mask = Uint8Array.from({ length: n / 8 }, (_, i) => (i % 7 === 0 ? 0x21 : 0));
    for (const codec of [scaledSign(), scaledSign({ segments: [300, 700] }), linf({ bits: 4 })] as Codec[])
      for (const hold of codec.takes.hold ? [undefined, mask] : [undefined])
        await onRanks(3, async (group) => {
          const [x, workerError] = [vector(group.rank, 0, n), vector(group.rank, 5, n)];
          const serverError = () => vector(9, 0, ownedElements(n, 3, group.rank, codec));
          const plain = { into: new Float32Array(n), workerError: workerError.slice(), serverError: serverError() };
          const draws = { seed: 3, step: 1 };
          await meanErrorCompensated(group, x, { ...plain, codec, hold, ...draws });

          const owned = serverError();
          const [begin, end] = ownedRange(n, 3, group.rank, codec);
          const mine = codec.forPart(begin, end, n);
          const ownHold = hold?.subarray(begin / 8, Math.ceil(end / 8));
          const reduce = (all: readonly Uint8Array[], result: Uint8Array) => {
            const call = codec.takes.random && { ...draws, index: (2 * group.rank + 1) * 64 * 16 + begin };
            for (const wire of all) mine.decodeAdd(owned, wire, { scale: 1 / 3, hold: ownHold });
            mine.encode(result, owned, { zero: "plus", ...call, hold: ownHold } as never);
            mine.decodeAdd(owned, result, { scale: -1, hold: ownHold });
          };
          const call = { zero: "plus", ...(codec.takes.random && { ...draws, index: 2 * group.rank * 64 * 16 }) };
          const encode = (wire: Uint8Array) =>
            codec.encodeWithFeedback(wire, x, workerError, { ...call, hold } as never);
          const exchange = openExchange(group);
          const wires = await exchange.meanOfWires({ n, encode, reduce, codec });
          const mean = new Float32Array(n);
          for (const { begin, end, wire } of wires)
            codec
              .forPart(begin, end, n)
              .decodeAdd(mean.subarray(begin, end), wire, { hold: hold?.subarray(begin / 8, Math.ceil(end / 8)) });
          expect([mean, workerError, owned]).toEqual([plain.into, plain.workerError, plain.serverError]);
        });
  });

  it("refuses the step on all ranks where a rank cannot write its wire", async () => {
    const outcomes = await onRanks(2, async (group) => {
      const encode = (wire: Uint8Array) =>
        scaledSign().encode(wire, new Float32Array(100).fill(group.rank === 1 ? Number.NaN : 1), { zero: "plus" });
      const reduce = () => expect.unreachable();
      return openExchange(group)
        .meanOfWires({ n: 100, encode, reduce })
        .catch((error: Error) => error.message);
    });
    for (const outcome of outcomes) expect(outcome).toContain("rank 1 refuses the step: the gradient is not finite");
  });

  const codecs: Record<string, Codec> = {
    "one scale": scaledSign() as Codec,
    blocks: scaledSign({ block: 40 }) as Codec,
    segments: scaledSign({ segments: [7, 0, 90, 203] }) as Codec,
    "8 bits": int8({ block: 20 }),
    "means of bins": binMeans(),
    "means of bins of segments": binMeans({ bits: 2, segments: [7, 0, 90, 203] }),
    "3 bits": l1({ bits: 3, segments: [150, 150] }),
    "4 bits, drawn": linf({ bits: 4 }) as Codec,
    qsgd: qsgd({ bits: 5, block: 30 }) as Codec,
    halves: f16,
    terngrad: terngrad() as Codec,
    "top-k": topK({ k: 20 }),
    cosines: dctTopK({ block: 10, k: 4 }),
  };

  it.each(Object.entries(codecs))(
    "loses nothing in 40 steps: outputs and errors add up to the inputs, %s",
    async (_, codec) => {
      const n = 300;
      const steps = 40;
      for (const ranks of worlds) {
        const results = await onRanks(ranks, async (group) => {
          const into = new Float32Array(n);
          const workerError = new Float32Array(n);
          const serverError = new Float32Array(ownedElements(n, ranks, group.rank, codec));
          for (let step = 0; step < steps; step++) {
            const x = vector(group.rank, step, n);
            await meanErrorCompensated(group, x, { into, workerError, serverError, codec, seed: 3, step });
          }
          return { into, workerError, serverError };
        });
        for (const { into } of results) expect(into).toEqual(results[0]!.into);
        const f = results.flatMap(({ serverError }) => [...serverError]);
        const errors = results[0]!.into.map((out, i) => {
          const e = results.reduce((sum, { workerError }) => sum + workerError[i]!, 0) / ranks;
          let inputs = 0;
          for (let step = 0; step < steps; step++) for (let r = 0; r < ranks; r++) inputs += value(r, step, i) / ranks;
          return Math.abs(out + e + (f[i] ?? 0) - inputs);
        });
        // Codecs are fp32; what momenta carry is held to fp64 in native/optimizers.
        expect(Math.max(...errors)).toBeLessThan(1e-6 * steps);
        expect(norm(results[0]!.workerError)).toBeGreaterThan(0);
      }
    },
  );

  it.each(Object.entries(codecs))(
    "shrinks the worker's and the owner's error by their decay: E ← β E + mean(x) − b, %s",
    async (_, codec) => {
      const [n, steps, decay] = [300, 20, 0.9];
      for (const ranks of [1, 2, 3, 8]) {
        const results = await onRanks(ranks, async (group) => {
          const [begin] = ownedRange(n, ranks, group.rank, codec);
          const [workerError, into] = [new Float32Array(n), new Float32Array(n)];
          const serverError = new Float32Array(ownedElements(n, ranks, group.rank, codec));
          const history = [];
          for (let step = 0; step < steps; step++) {
            const options = { into: into.fill(0), workerError, serverError, codec, seed: 3, step, decay };
            await meanErrorCompensated(group, vector(group.rank, step, n), options);
            const error = [...workerError].map((value) => value / ranks);
            for (const [i, value] of serverError.entries()) error[begin + i]! += value;
            history.push({ out: [...into], error });
          }
          return history;
        });
        const before = new Array<number>(n).fill(0);
        for (let step = 0; step < steps; step++)
          for (let i = 0; i < n; i++) {
            const error = results.reduce((sum, history) => sum + history[step]!.error[i]!, 0);
            const x = Array.from({ length: ranks }, (_, r) => value(r, step, i) / ranks).reduce((a, b) => a + b, 0);
            expect(Math.abs(error - (decay * before[i]! + x - results[0]![step]!.out[i]!))).toBeLessThan(2e-5);
            before[i] = error;
          }
      }
    },
  );

  it("refuses a decay that makes no sense, before anything is sent", async () => {
    await onRanks(2, async (group) => {
      const buffers = { into: new Float32Array(9), workerError: new Float32Array(9) };
      const serverError = new Float32Array(ownedElements(9, 2, group.rank));
      for (const decay of [0, -1, 1.01, Number.NaN])
        await expect(async () =>
          meanErrorCompensated(group, new Float32Array(9), { ...buffers, serverError, decay }),
        ).rejects.toThrow(`meanErrorCompensated: decay is ${decay}, and must be more than 0 and at most 1`);
    });
  });

  it("draws different random numbers on every rank and in every step, and the same ones for the same seed", async () => {
    const codec = terngrad() as Codec;
    const run = (seed: number, step: number) =>
      onRanks(2, async (group) => {
        const n = 256;
        const e = new Float32Array(n);
        const serverError = new Float32Array(ownedElements(n, 2, group.rank, codec));
        const x = Float32Array.from({ length: n }, (_, i) => (i % 128 === 0 ? 1 : 0.5));
        await meanErrorCompensated(group, x, {
          into: new Float32Array(n),
          workerError: e,
          serverError,
          codec,
          seed,
          step,
        });
        return [...e];
      });
    const [first, second] = await run(1, 0);
    expect(second).not.toEqual(first);
    expect((await run(1, 1))[0]).not.toEqual(first);
    expect((await run(2, 0))[0]).not.toEqual(first);
    expect((await run(1, 0))[0]).toEqual(first);
  });

  it("keeps masked elements out of scales, owners' errors and the result", async () => {
    const n = 70;
    const hold = new Uint8Array(9);
    for (const i of [0, 1, 8, 33, 69]) hold[i >> 3]! |= 1 << (i & 7);
    const is = (i: number) => (hold[i >> 3]! >> (i & 7)) & 1;
    const run = (at: number) =>
      onRanks(3, async (group) => {
        const x = vector(group.rank, 0, n).map((v, i) => (is(i) ? at : v));
        const into = new Float32Array(n);
        const serverError = new Float32Array(ownedElements(n, 3, group.rank));
        await meanErrorCompensated(group, x, { into, workerError: new Float32Array(n), serverError, hold });
        return { into: [...into], f: [...serverError] };
      });
    const small = await run(0);
    expect(await run(1000)).toEqual(small);
    for (const [i, v] of small[0]!.into.entries()) expect(v === 0).toBe(is(i) === 1);
    for (const [i, v] of small.flatMap(({ f }) => f).entries()) expect(v === 0).toBe(is(i) === 1);
  });

  it("stops all ranks together if one has a NaN, or an owner a sum that it cannot write", async () => {
    for (const ranks of [1, 2, 3]) {
      const outcomes = await onRanks(ranks, async (group) => {
        const x = vector(group.rank, 0, 100);
        if (group.rank === ranks - 1) x[17] = Number.NaN;
        const into = new Float32Array(100);
        const serverError = new Float32Array(ownedElements(100, ranks, group.rank));
        const error = await meanErrorCompensated(group, x, {
          into,
          workerError: new Float32Array(100),
          serverError,
        }).catch((error: unknown) => error);
        return { error, into };
      });
      for (const { error, into } of outcomes) {
        expect(error).toBeInstanceOf(StepRefusedError);
        expect((error as Error).message).toContain(`rank ${ranks - 1} refuses the step: the gradient is not finite`);
        expect(into).toEqual(new Float32Array(100));
      }
    }
    const beyond = await onRanks(3, (group) => {
      const x = new Float32Array(100).fill(3e38);
      const serverError = new Float32Array(ownedElements(100, 3, group.rank)).fill(group.rank === 1 ? 3e38 : 0);
      const options = { into: new Float32Array(100), workerError: new Float32Array(100), serverError };
      return meanErrorCompensated(group, x, options).catch((error: Error) => error.message);
    });
    for (const message of beyond) expect(message).toContain("rank 1 refuses the step: the gradient is not finite");
  });

  it("names a wrong length before anything is sent", async () => {
    const messages = await onRanks(2, async (group) => {
      const options = {
        into: new Float32Array(10),
        workerError: new Float32Array(10),
        serverError: new Float32Array(10),
      };
      const error = await meanErrorCompensated(group, new Float32Array(10), options).catch(
        (error: Error) => error.message,
      );
      const bare = terngrad() as Codec;
      const drawn = await meanErrorCompensated(group, new Float32Array(10), { ...options, codec: bare }).catch(
        (error: Error) => error.message,
      );
      return [error, drawn, group.sent().messages];
    });
    expect(messages[0]![0]).toBe(
      "meanErrorCompensated: serverError has 10 floats, and must have 8, the elements that rank 0 of 2 owns (see ownedElements).",
    );
    expect(messages[1]![0]).toContain("serverError has 10 floats, and must have 2, the elements that rank 1 of 2 owns");
    expect(messages[0]![1]).toContain("seed is undefined, and terngrad needs it to draw random numbers");
    expect(messages[0]![2]).toBe(0);
  });

  it.each([
    [124_000_000, 8, 27_125_056],
    [340_000_768, 64, 83_672_568],
    [768, 8, 224],
  ])(
    "sends the bytes that DeepSpeed sends, for %i floats on %i ranks, which it does not have to pad",
    (n, ranks, bytes) => {
      expect(meanErrorCompensatedCost(n, ranks, 0).bytes).toBe(bytes);
    },
  );

  it("sends no pads: fewer bytes than DeepSpeed, whose chunks are multiples of 8", () => {
    // 2 floats on 8 ranks are 64 with its pads, 70 bytes from each rank; one rank owns both of them here.
    const bytes = Array.from({ length: 8 }, (_, rank) => meanErrorCompensatedCost(2, 8, rank).bytes);
    expect(bytes).toEqual([5, 5, 5, 5, 5, 5, 5, 7 * 5]);
    expect(meanErrorCompensatedCost(340_000_000, 64, 0).bytes).toBeLessThan(83_672_568);
  });

  it("sends a 32nd of the bytes of a 32-bit mean, a 16th of a 16-bit one", () => {
    expect(dense("f16").cost([124_000_000], 8, 0).bytes).toBe(434_000_000);
    expect(dense("f16").cost([768], 8, 0).bytes).toBe(2688);
    // Chunks begin at multiples of 8, which 340,000,000/64 is not. So ranks own 4 floats more or less, and send
    // 2 · 2 (P − 2) bytes for each.
    const bytes = Array.from({ length: 64 }, (_, rank) => dense("f16").cost([340_000_000], 64, rank).bytes);
    expect(bytes.reduce((sum, each) => sum + each, 0) / 64).toBe(1_338_750_000);
    for (const each of bytes) expect(Math.abs(each - 1_338_750_000)).toBe(4 * 2 * 62);
    const n = 124_000_000;
    expect((2 * 7 * 4 * n) / 8 / meanErrorCompensatedCost(n, 8, 0).bytes).toBeCloseTo(32, 3);
  });
});

const worst = (got: ArrayLike<number>, expected: ArrayLike<number>) => {
  expect(got.length).toBe(expected.length);
  return Array.from(got).reduce((most, v, i) => Math.max(most, Math.abs(v - expected[i]!)), 0);
};
