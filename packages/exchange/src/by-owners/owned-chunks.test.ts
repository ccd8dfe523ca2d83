import { bf16, type Codec, dctTopK, f16, int8, l1, linf, qsgd, scaledSign, sign, terngrad, topK } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { Scratch } from "../scratch.ts";
import { ownedChunks } from "./owned-chunks.ts";

const x = (n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(1 + i * 12.9898) * (1 + (i % 5)));

const encodedWhole: Record<string, Codec> = {
  sign: sign as Codec,
  "scaled sign": scaledSign() as Codec,
  "scaled sign in blocks": scaledSign({ block: 12 }) as Codec,
  "scaled sign by segments": scaledSign({ segments: [3, 0, 0, 130, 8, 1, 200, 0, 58] }) as Codec,
  int8: int8(),
  bf16,
  f16,
  "l1 of 3 bits": l1({ bits: 3 }),
  "l1 of 3 bits in wider fields": l1({ bits: 3, width: 8, block: 64 }),
  "l1 of 7 bits, unscaled": l1({ bits: 7, unscaled: true, segments: [399, 1] }),
  "linf of 5 bits": linf({ bits: 5 }) as Codec,
  "qsgd of 2 bits": qsgd({ bits: 2, block: 80 }) as Codec,
};

describe("chunks", () => {
  it.each(Object.entries(encodedWhole))(
    "have wires that decode to the same as the wire of the whole vector, %s",
    (_, codec) => {
      const n = 400;
      for (const ranks of [1, 2, 3, 7, 64]) {
        const chunks = ownedChunks(codec, n, ranks);
        const call = chunks.call({ seed: 4, step: 2 }, 3);
        const whole = new Uint8Array(codec.wireBytes(n));
        const wires = chunks.sizes.map((bytes) => new Uint8Array(bytes));
        chunks.write(wires, new Scratch(), (of, wire, begin, end) => {
          expect([of, begin, end]).toEqual([codec, 0, n]);
          of.encode(wire, x(n), call);
          whole.set(wire);
        });
        const [together, apart, added] = [new Float32Array(n), x(n), new Float32Array(n)];
        codec.decodeAdd(together, whole);
        chunks.handOut(wires, apart, undefined, {});
        chunks.handOut(wires, new Float32Array(n), added, {});
        for (const each of [apart, added]) expect(each).toEqual(together);
        expect(Math.max(...together.map(Math.abs))).toBeGreaterThan(0);
      }
    },
  );

  it("cover the vector in order, in whole blocks, as evenly as blocks allow", () => {
    for (const [codec, unit] of [
      [scaledSign() as Codec, 8],
      [scaledSign({ block: 12 }) as Codec, 24],
      [terngrad() as Codec, 64],
      [qsgd({ bits: 4, block: 48 }) as Codec, 192],
      [dctTopK({ block: 8, k: 1, dimensions: 2 }), 64],
    ] as const)
      for (const ranks of [1, 2, 5, 9])
        for (const n of [0, 64, 640, 64 * 97]) {
          const { starts } = ownedChunks(codec, n, ranks);
          expect([starts[0], starts.at(-1), starts.length]).toEqual([0, n, ranks + 1]);
          const units = starts.slice(1).map((end, r) => Math.ceil((end - starts[r]!) / unit));
          expect(Math.max(...units) - Math.min(...units)).toBeLessThanOrEqual(1);
          for (const start of starts.slice(0, -1)) expect(start === n || start % unit === 0).toBe(true);
        }
  });

  it("keep k elements of top-k together, or at most one more each", () => {
    for (const ranks of [1, 2, 3, 8]) {
      const { codecs } = ownedChunks(topK({ k: 25 }), 1000, ranks);
      const kept = codecs.reduce((sum, { parameters }) => sum + parameters.k!, 0);
      expect(kept).toBeGreaterThanOrEqual(25);
      expect(kept).toBeLessThan(25 + ranks);
    }
  });

  it("have random numbers of their own for every rank and owner", () => {
    const [n, ranks] = [1000, 3];
    const chunks = ownedChunks(terngrad() as Codec, n, ranks);
    const indices = new Set<number>();
    for (let stream = 0; stream < 2 * ranks; stream++)
      for (let r = 0; r < ranks; r++) {
        const [begin, end] = [chunks.starts[r]!, chunks.starts[r + 1]!];
        const { index } = chunks.call({ seed: 0, step: 0 }, stream, begin, end) as { index: number };
        for (let i = begin; i < end; i++) indices.add(index + i - begin);
      }
    expect(indices.size).toBe(2 * ranks * n);
  });
});
