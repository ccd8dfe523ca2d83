import { type Codec, f16, int8, l1, qsgd } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { StepRefusedError } from "../index.ts";
import { sum } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const lengths = [0, 1, 63, 64, 65, 1000];

const vector = (rank: number, n: number) =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(1 + i * 12.9898 + rank * 78.233) * (1 + (i % 7)));

const halfEven = (x: number) => {
  const below = Math.floor(x);
  const rest = x - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
};

/** int8 in float64, encoded and decoded. */
function throughInt8(x: readonly number[]): number[] {
  const scale = Math.max(...x.map(Math.abs), 0);
  return x.map((v) => (scale === 0 ? 0 : halfEven((v * 127) / scale) * (scale / 127)));
}

describe("the sum through a codec", () => {
  it.each(worlds)(
    "matches int8 in float64, on the way up, as a sum and on the way down, on %i ranks",
    async (ranks) => {
      for (const n of lengths) {
        const block = 8;
        const got = await onRanks(ranks, async (group) => {
          const into = new Float32Array(n);
          await sum(group, vector(group.rank, n), { codec: int8({ block }), into });
          return into;
        });
        for (const into of got) expect(into).toEqual(got[0]);
        const vectors = got.map((_, r) => vector(r, n));
        let [worst, most] = [0, 0];
        for (let begin = 0; begin < n; begin += block) {
          const of = (x: Float32Array) => [...x.subarray(begin, begin + block)];
          const inputs = vectors.map(of);
          const up = inputs.map(throughInt8);
          const S = up[0]!.map((_, i) => up.reduce((total, x) => total + x[i]!, 0));
          const expected = ranks === 1 ? S : throughInt8(S);
          const bound = inputs.reduce((total, x) => total + Math.max(...x.map(Math.abs)) / 127, 0);
          for (const [i, out] of of(got[0]!).entries()) {
            // fp32 and float64 may round a value half-way between two levels to different ones
            const step = Math.max(...S.map(Math.abs)) / 127;
            const away = Math.abs(out - expected[i]!);
            if (away > 1e-4) worst = Math.max(worst, Math.abs(away - step));
            most = Math.max(most, Math.abs(out - inputs.reduce((total, x) => total + x[i]!, 0)) / bound);
          }
        }
        expect(worst).toBeLessThan(1e-4);
        expect(most).toBeLessThanOrEqual(1.0001); // the bound of the file's header
      }
    },
  );

  it("is exact where the codec is: halves of small whole numbers", async () => {
    for (const ranks of [2, 3, 9]) {
      const got = await onRanks(ranks, async (group) => {
        const into = new Float32Array(100).fill(1);
        const x = Float32Array.from({ length: 100 }, (_, i) => i * (group.rank + 1));
        await sum(group, x, { codec: f16, into, scale: 0.5 });
        return [...into];
      });
      const total = (ranks * (ranks + 1)) / 2;
      const expected = Array.from({ length: 100 }, (_, i) => 1 + (i * total) / 2);
      if (total * 99 <= 2048) for (const into of got) expect(into).toEqual(expected);
      else
        for (const into of got) expect(Math.max(...into.map((v, i) => Math.abs(v - expected[i]!)))).toBeLessThan(1.01);
    }
  });

  it("has no bias through a codec with random rounding", async () => {
    const codec = qsgd({ bits: 3 }) as Codec;
    const steps = 300;
    const [mean] = await onRanks(3, async (group) => {
      const into = new Float32Array(24);
      for (let step = 0; step < steps; step++)
        await sum(group, vector(group.rank, 24), { codec, into, scale: 1 / steps, seed: 5, step });
      return into;
    });
    const exact = [0, 1, 2].map((r) => vector(r, 24));
    const norm = (x: Float32Array) => Math.hypot(...x);
    // A draw's variance is at most (norm / s)² / 4, s = 3: three on the way up, one down.
    const deviation = Math.sqrt(
      (exact.reduce((v, x) => v + norm(x) ** 2, 0) + (3 * norm(exact[0]!)) ** 2) / 36 / steps,
    );
    for (const [i, v] of mean!.entries())
      expect(Math.abs(v - exact.reduce((total, x) => total + x[i]!, 0))).toBeLessThan(4.5 * deviation);
  });

  it("refuses the step on every rank if one cannot write its vector", async () => {
    const outcomes = await onRanks(3, (group) => {
      const x = new Float32Array(16).fill(group.rank === 1 ? 3e38 : 1); // twice its mean is beyond fp32
      return sum(group, x, { codec: l1({ bits: 4 }), into: new Float32Array(16) }).catch((error: unknown) => error);
    });
    for (const outcome of outcomes) {
      expect(outcome).toBeInstanceOf(StepRefusedError);
      expect((outcome as Error).message).toContain(
        "rank 1 refuses the step: a value is beyond what its codec can write",
      );
    }
  });
});
