import { type Codec, dctTopK, linf, scaledSign, topK } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { StepRefusedError } from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { sparse, sparseCost } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Multiples of 2520, which 1 to 9 divide, with distinct magnitudes. */
const value = (rank: number, step: number, i: number) =>
  2520 * (((i * 389 + rank * 101 + step * 57) % 1009) + 1) * ((i + rank + step) % 2 === 0 ? 1 : -1);

const vector = (rank: number, step: number, n: number) =>
  Float32Array.from({ length: n }, (_, i) => value(rank, step, i));

/** The k largest magnitudes, the others 0. */
function kept(x: readonly number[], k: number): number[] {
  const least = [...x].map(Math.abs).sort((a, b) => b - a)[k - 1]!;
  let left = k;
  return x.map((v) => (Math.abs(v) >= least && left-- > 0 ? v : 0));
}

/** Orthonormal DCT-II, and back, from the definition. */
const cosine = (L: number, k: number, i: number) =>
  Math.sqrt((k === 0 ? 1 : 2) / L) * Math.cos((Math.PI * k * (2 * i + 1)) / (2 * L));
const dct = (x: readonly number[]) => x.map((_, k) => x.reduce((sum, v, i) => sum + v * cosine(x.length, k, i), 0));
const inverse = (X: readonly number[]) => X.map((_, i) => X.reduce((sum, v, k) => sum + v * cosine(X.length, k, i), 0));

describe("the sparse mean", () => {
  it.each(worlds)("is the exact mean of the kept elements, on %i ranks", async (ranks) => {
    for (const n of [1, 63, 64, 65, 1000])
      for (const k of [1, Math.ceil(n / 10), n]) {
        const got = await onRanks(ranks, async (group) => {
          const into = new Float32Array(n).fill(1);
          await sparse(group, vector(group.rank, 0, n), { codec: topK({ k }), into });
          return [...into];
        });
        const sent = Array.from({ length: ranks }, (_, r) => kept([...vector(r, 0, n)], k));
        for (const into of got)
          for (const [i, v] of into.entries()) {
            const mean = sent.reduce((sum, x) => sum + x[i]!, 0) / ranks;
            expect(Math.abs(v - 1 - mean)).toBeLessThanOrEqual(1 + 3e-7 * Math.abs(mean));
          }
        for (const into of got) expect(into).toEqual(got[0]);
        if (ranks === 2 || ranks === 4)
          expect(got[0]).toEqual(
            sent[0]!.map((_, i) => Math.fround(1 + 0) + sent.reduce((sum, x) => sum + x[i]!, 0) / ranks),
          );
      }
  });

  it.each(worlds)("keeps the unsent rest in the error, on %i ranks: nothing is lost", async (ranks) => {
    const [n, k, steps] = [200, 7, 12];
    const got = await onRanks(ranks, async (group) => {
      const [into, error] = [new Float32Array(n), new Float32Array(n)];
      for (let step = 0; step < steps; step++)
        await sparse(
          group,
          vector(group.rank, step, n).map((v) => v / 2520),
          { codec: topK({ k }), into, error },
        );
      return { into, error };
    });
    for (let i = 0; i < n; i++) {
      let inputs = 0;
      for (let step = 0; step < steps; step++)
        for (let r = 0; r < ranks; r++) inputs += value(r, step, i) / 2520 / ranks;
      const waiting = got.reduce((sum, { error }) => sum + error[i]!, 0) / ranks;
      expect(Math.abs(got[0]!.into[i]! + waiting - inputs)).toBeLessThan(0.01);
    }
    expect(Math.max(...got[0]!.error.map(Math.abs))).toBeGreaterThan(0);
  });

  it("shrinks the error by its decay, as SparseLoCo does", async () => {
    const [n, k, steps, decay] = [200, 7, 12, 0.95];
    const x = (rank: number, step: number) => vector(rank, step, n).map((v) => v / 2520);
    const got = await onRanks(3, async (group) => {
      const [into, error] = [new Float32Array(n), new Float32Array(n)];
      for (let step = 0; step < steps; step++)
        await sparse(group, x(group.rank, step), { codec: topK({ k }), into, error, decay });
      return { into, error };
    });
    const mean = new Array<number>(n).fill(0);
    for (const [rank, { into, error }] of got.entries()) {
      let e = new Array<number>(n).fill(0);
      for (let step = 0; step < steps; step++) {
        const sum = e.map((value, i) => decay * value + x(rank, step)[i]!);
        const sent = kept(sum, k);
        e = sum.map((value, i) => value - sent[i]!);
        for (const [i, value] of sent.entries()) mean[i]! += value / 3;
      }
      for (const [i, value] of error.entries()) expect(Math.abs(value - e[i]!)).toBeLessThan(0.01);
      expect(into).toEqual(got[0]!.into);
    }
    for (const [i, value] of got[0]!.into.entries()) expect(Math.abs(value - mean[i]!)).toBeLessThan(0.01);
  });

  it("refuses a decay that makes no sense, on every rank and before anything is sent", async () => {
    await onRanks(2, async (group) => {
      const [into, error] = [new Float32Array(10), new Float32Array(10)];
      const ask = (options: { decay: number; error?: Float32Array }) =>
        sparse(group, new Float32Array(10), { codec: topK({ k: 2 }), into, ...options });
      for (const decay of [0, -1, 1.01, Number.NaN])
        await expect(async () => ask({ decay, error })).rejects.toThrow(`sparse: decay is ${decay}, and must be`);
      await expect(async () => ask({ decay: 0.9 })).rejects.toThrow("there is no error that it could shrink");
    });
  });

  it("is DeMo's: the mean of the largest cosines of every chunk", async () => {
    const [n, block, k] = [96, 16, 3];
    for (const ranks of [1, 2, 5]) {
      const got = await onRanks(ranks, async (group) => {
        const into = new Float32Array(n);
        await sparse(
          group,
          vector(group.rank, 0, n).map((v) => v / 2520),
          { codec: dctTopK({ block, k }), into },
        );
        return into;
      });
      const mean = new Array<number>(n).fill(0);
      for (let r = 0; r < ranks; r++)
        for (let at = 0; at < n; at += block) {
          const chunk = [...vector(r, 0, n).subarray(at, at + block)].map((v) => v / 2520);
          for (const [i, v] of inverse(kept(dct(chunk), k)).entries()) mean[at + i]! += v / ranks;
        }
      for (const into of got) expect(into).toEqual(got[0]);
      expect(Math.max(...mean.map((v, i) => Math.abs(v - got[0]![i]!)))).toBeLessThan(1e-3);
    }
  });

  it.each(worlds)(
    "is over the senders of each element if that is asked, as DeMo's reference has it, on %i ranks",
    async (ranks) => {
      for (const n of [1, 64, 1000])
        for (const k of [1, Math.ceil(n / 10), n]) {
          const got = await onRanks(ranks, async (group) => {
            const [into, error] = [new Float32Array(n), new Float32Array(n)];
            const codec = topK({ k, indices: n === 64 ? "elias-fano" : "fixed" });
            await sparse(group, vector(group.rank, 0, n), { codec, into, error, over: "senders" });
            return { into, error };
          });
          const sent = Array.from({ length: ranks }, (_, r) => kept([...vector(r, 0, n)], k));
          for (const [r, { into, error }] of got.entries()) {
            expect(into).toEqual(got[0]!.into);
            for (let i = 0; i < n; i++) {
              const senders = sent.filter((x) => x[i] !== 0).length;
              const mean = senders === 0 ? 0 : sent.reduce((sum, x) => sum + x[i]!, 0) / senders;
              expect(Math.abs(into[i]! - mean)).toBeLessThanOrEqual(3e-7 * 2520 * 1009);
              expect(error[i]).toBe(value(r, 0, i) - sent[r]![i]!);
            }
          }
        }
    },
  );

  it("is over the senders of each cosine with DeMo's codec, in one dimension and in two", async () => {
    for (const dimensions of [1, 2] as const) {
      const [ranks, block, k] = [3, 4, 3];
      const n = 2 * block ** dimensions;
      const x = (rank: number) => vector(rank, 0, n).map((v) => v / 2520);
      const codec = dctTopK({ block, k, dimensions });
      const got = await onRanks(ranks, async (group) => {
        const into = new Float32Array(n);
        await sparse(group, x(group.rank), { codec, into, over: "senders" });
        return into;
      });
      const wanted = new Array<number>(n).fill(0);
      const length = block ** dimensions;
      const columns = (X: number[], of: (x: readonly number[]) => number[]) => {
        const lines = Array.from({ length: block }, (_, c) => of(X.filter((_, i) => i % block === c)));
        return X.map((_, i) => lines[i % block]![Math.floor(i / block)]!);
      };
      const rows = (X: number[], of: (x: readonly number[]) => number[]) =>
        Array.from({ length: X.length / block }, (_, r) => of(X.slice(r * block, (r + 1) * block))).flat();
      for (let at = 0; at < n; at += length) {
        const sent = Array.from({ length: ranks }, (_, r) => {
          const X = rows([...x(r).subarray(at, at + length)], dct);
          return kept(dimensions === 2 ? columns(X, dct) : X, k);
        });
        const mean = sent[0]!.map((_, i) => {
          const of = sent.map((X) => X[i]!).filter((v) => v !== 0);
          return of.length === 0 ? 0 : of.reduce((a, b) => a + b, 0) / of.length;
        });
        const back = rows(dimensions === 2 ? columns(mean, inverse) : mean, inverse);
        for (const [i, v] of back.entries()) wanted[at + i] = v;
      }
      for (const into of got) {
        expect(into).toEqual(got[0]);
        expect(Math.max(...wanted.map((v, i) => Math.abs(v - into[i]!)))).toBeLessThan(1e-3);
      }
    }
  });

  it("holds the wires and, over senders, a count for each element of a chunk", async () => {
    for (const over of ["ranks", "senders"] as const)
      for (const codec of [topK({ k: 7 }), dctTopK({ block: 16, k: 3 })])
        await onRanks(3, async (group) => {
          await sparse(group, vector(group.rank, 0, 96), { codec, into: new Float32Array(96), over });
          const { bytes, peakBytes } = sparseCost(96, 3, group.rank, codec, over);
          expect({ bytes: group.sent().bytes, peakBytes: scratchOf(group).peak }).toEqual({ bytes, peakBytes });
        });
  });

  it("refuses a codec that keeps no elements if the mean is over senders", async () => {
    await onRanks(1, async (group) => {
      const mean = sparse(group, new Float32Array(8), {
        codec: scaledSign() as Codec,
        into: new Float32Array(8),
        over: "senders",
      });
      await expect(mean).rejects.toThrow(
        "sparse: over is senders, and scaled-sign sends every element: take top-k or dct-top-k, or over: ranks.",
      );
    });
  });

  it("sends the shorter wires of top-k, whose bytes are k l + k + ⌊n / 2^l⌋ bits and the values", async () => {
    // n = 640, k = 10: l = 6, so 60 + 10 + 10 bits of indices.
    const bytes = { f32: 10 + 40, f16: 10 + 20, "2bit": 16 + 10 + 3, sign: 4 + 10 + 2 };
    for (const ranks of [1, 2, 3, 4, 5])
      for (const values of ["f32", "f16", "2bit", "sign"] as const) {
        const codec = topK({ k: 10, indices: "elias-fano", values });
        const x = (rank: number) => vector(rank, 0, 640).map((v) => v / 2520);
        const got = await onRanks(ranks, async (group) => {
          const [into, error] = [new Float32Array(640), new Float32Array(640)];
          await sparse(group, x(group.rank), { codec, into, error });
          expect(group.sent().bytes).toBe((ranks - 1) * bytes[values]);
          return { into, error };
        });
        for (const { into } of got) expect(into).toEqual(got[0]!.into);
        for (let i = 0; i < 640; i++) {
          const sent = got.reduce((sum, { error }, rank) => sum + x(rank)[i]! - error[i]!, 0) / ranks;
          expect(Math.abs(sent - got[0]!.into[i]!)).toBeLessThan(1e-3);
        }
      }
  });

  it("refuses a mean over senders of values that cannot be divided where they lie", async () => {
    await onRanks(1, async (group) => {
      const codec = topK({ k: 2, values: "2bit" });
      const mean = sparse(group, new Float32Array(8), { codec, into: new Float32Array(8), over: "senders" });
      await expect(mean).rejects.toThrow("values of 2bit cannot be divided where they lie: take values f32, or over");
    });
  });

  it("decodes DeMo's golden chunk", async () => {
    const [into] = await onRanks(1, async (group) => {
      const into = new Float32Array(8);
      await sparse(group, Float32Array.of(1, -2, 3, 0.5, -0.25, 4, -1, 2), {
        codec: dctTopK({ block: 8, k: 2 }),
        into,
      });
      return into;
    });
    const golden = [1.8908155, -1.4707012, 3.2832012, -0.07831556, -0.07831556, 3.2832012, -1.4707012, 1.8908155];
    for (const [i, v] of golden.entries()) expect(into![i]).toBeCloseTo(v, 6);
  });

  it("takes a codec that needs a sign of zero, and masks elements", async () => {
    const hold = Uint8Array.of(0b00000010);
    const got = await onRanks(2, async (group) => {
      const into = new Float32Array(4);
      await sparse(group, Float32Array.of(1, 99, -1, 1), { codec: scaledSign() as Codec, into, hold });
      return [...into];
    });
    for (const into of got) expect(into).toEqual([1, 0, -1, 1]);
  });

  it("stops all ranks together if one has a NaN, and keeps its error", async () => {
    for (const ranks of [1, 3]) {
      const outcomes = await onRanks(ranks, async (group) => {
        const x = vector(group.rank, 0, 20);
        if (group.rank === 0) x[3] = Number.NaN;
        const [into, error] = [new Float32Array(20), new Float32Array(20).fill(5)];
        const thrown: unknown = await sparse(group, x, { codec: topK({ k: 4 }), into, error }).catch((e: unknown) => e);
        return { thrown, into, error };
      });
      for (const { thrown, into } of outcomes) {
        expect(thrown).toBeInstanceOf(StepRefusedError);
        expect((thrown as Error).message).toContain("rank 0 refuses the step: the gradient is not finite");
        expect(into).toEqual(new Float32Array(20));
      }
      expect(outcomes[0]!.error).toEqual(new Float32Array(20).fill(5));
    }
  });

  it("draws the same numbers for an element however the vector is cut, and others on each rank and without its place", async () => {
    const codec = linf({ bits: 3, block: 64 }) as Codec;
    const x = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i));
    const [first] = await onRanks(2, async (group) => {
      const mean = async (...cuts: readonly (readonly [begin: number, end: number, offset?: number])[]) => {
        const into = new Float32Array(256);
        for (const [begin, end, offset] of cuts)
          await sparse(group, x.subarray(begin, end), {
            into: into.subarray(begin, end),
            codec,
            ...{ seed: 7, step: 3, offset },
          });
        return into;
      };
      return {
        whole: await mean([0, 256, 1024]),
        parts: await mean([0, 64, 1024], [64, 192, 1088], [192, 256, 1216]),
        elsewhere: await mean([0, 256, 0]),
        withoutPlaces: await mean([0, 64], [64, 192], [192, 256]),
        wrong: await mean([0, 256, 32]).catch((error: unknown) => String(error)),
      };
    });
    expect(first!.parts).toEqual(first!.whole);
    expect(first!.elsewhere).not.toEqual(first!.whole);
    expect(first!.withoutPlaces).not.toEqual(first!.whole);
    expect(first!.wrong).toContain("sparse: offset is 32, and must be a multiple of 64");
    // Both ranks sent the same vector. With the same draws each mean would be one of the 7 levels of its block, and not
    // between two.
    const level = (i: number) =>
      Math.max(...x.subarray(64 * Math.floor(i / 64), 64 * Math.floor(i / 64) + 64).map(Math.abs)) / 3;
    expect(first!.whole.some((value, i) => Math.abs(((Math.abs(value) / level(i)) % 1) - 0.5) < 1e-3)).toBe(true);
  });

  it("refuses a k larger than the vector", () => {
    expect(() => sparseCost(10, 2, 0, topK({ k: 11 }))).toThrow("k is 11, and of 10 floats at most 10 can be kept");
  });
});
