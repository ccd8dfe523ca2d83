import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { definition, terngrad } from "./terngrad.ts";

/** Segments of every kind: an empty one, odd ends, a last one of one element. */
const segments = (n: number): number[] => [
  0,
  Math.floor(n / 3),
  n - Math.floor(n / 3) - Math.min(n, 1),
  Math.min(n, 1),
];

describe("terngrad", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "one scale": { floats: gradients },
      "one scale, the whole range of fp32": {},
      "blocks of 24": { parameters: () => ({ block: 24 }), floats: gradients },
      "blocks of 256, clipped": { parameters: () => ({ block: 256, clip: 2.5 }), floats: gradients },
      "blocks of 100, most of them zero": {
        parameters: () => ({ block: 100 }),
        floats: (n, seed) => anyFloats(n, seed).map((x, i) => (i % 300 < 100 ? x : i % 2 ? 0 : -0)),
      },
      segments: { parameters: (n) => ({ segments: segments(n) }), floats: gradients },
    },
  });

  it("takes two bits per float and four bytes per scale group", () => {
    expect([0, 1, 4, 5].map(terngrad().wireBytes)).toEqual([0, 5, 5, 6]);
    expect(terngrad({ block: 100 }).wireBytes(1001)).toBe(4 * 11 + 251);
  });

  it("packs by quarters, as the authors' code does", () => {
    const wire = new Uint8Array(4 + 2);
    terngrad().encode(wire, new Float32Array([1, 0, -1, 1, 0, 0, -1, 1]), { seed: 1, step: 1 });
    expect([...wire.subarray(4)]).toEqual([18, 153]);
  });

  it("says which parameter is wrong, and how", () => {
    const sentence = "and must be a number of standard deviations, 0 for none";
    for (const clip of [-1, Infinity, Number.NaN, "2.5" as never])
      expect(() => terngrad({ clip })).toThrow(`terngrad: clip is ${clip}, ${sentence}`);
    expect(() => terngrad({ block: 0 })).toThrow("terngrad: block is 0, and must be a whole number, 1 or more.");
    expect(() => codecNamed("terngrad", { bits: 2 })).toThrow("terngrad takes block, segments, clip, not bits.");
    expect(() => terngrad({ segments: [3, 4] }).wireBytes(8)).toThrow(
      "they add up to 7 floats, and there are 8; give lengths that add up to that.",
    );
  });

  /** Mean of what n draws for one value give, beside a 1 that sets the scale. */
  function meanOf(value: number, n: number, seed: number): number {
    const x = new Float32Array(n + 1).fill(value);
    x[n] = 1;
    const wire = new Uint8Array(terngrad().wireBytes(n + 1));
    terngrad().encode(wire, x, { seed, step: 3 });
    const sum = new Float32Array(n + 1);
    terngrad().decodeAdd(sum, wire);
    return sum.subarray(0, n).reduce((all, t) => all + t, 0) / n;
  }

  it.each([0.5, -0.5, 0.9, -0.1, 0.01, 1 / 3, -1e-4])("has the mean %d after 2·10⁵ draws", (value) => {
    const n = 2e5;
    const sigma = Math.sqrt((Math.abs(value) * (1 - Math.abs(value))) / n);
    expect(Math.abs(meanOf(value, n, 11) - value)).toBeLessThan(4 * sigma);
  });

  it("always sends the largest, and never a zero", () => {
    expect(meanOf(1, 1000, 1)).toBe(1);
    expect(meanOf(-1, 1000, 1)).toBe(-1);
    expect(meanOf(0, 1000, 1)).toBe(0);
  });

  it("draws anew at every step, and the same again for the same one, whichever part of a vector it is", () => {
    const x = gradients(1000, 5);
    const wireOf = (part: Float32Array, seed: number, step: number, index = 0): string => {
      const wire = new Uint8Array(terngrad().wireBytes(part.length));
      terngrad().encode(wire, part, { seed, step, index });
      return toHex(wire);
    };
    expect(wireOf(x, 1, 2)).toBe(wireOf(x, 1, 2));
    expect(new Set([wireOf(x, 1, 2), wireOf(x, 1, 3), wireOf(x, 2, 2), wireOf(x, 1, 2, 64)]).size).toBe(4);
  });

  it("clips at c standard deviations: the scale is c σ, and what lies beyond is always sent as that", () => {
    // Mean 0; σ² = (2·16 + 30·4) / 512, so σ = 0.545…
    const x = new Float32Array(512);
    x.fill(2, 0, 15).fill(-2, 15, 30);
    x[100] = 4;
    x[200] = -4;
    const bound = 2.5 * Math.sqrt((2 * 16 + 30 * 4) / 512);
    const codec = terngrad({ clip: 2.5 });
    const wire = new Uint8Array(codec.wireBytes(512));
    codec.encode(wire, x, { seed: 1, step: 1 });
    const sum = new Float32Array(512);
    codec.decodeAdd(sum, wire);
    expect([...sum]).toEqual([...x].map((value) => Math.sign(value) * Math.fround(bound)));
  });

  it("does not clip where nothing lies beyond, or where all elements are equal", () => {
    const scaleOf = (x: number[], clip: number): number => {
      const wire = new Uint8Array(terngrad({ clip }).wireBytes(x.length));
      terngrad({ clip }).encode(wire, new Float32Array(x), { seed: 1, step: 1 });
      return new DataView(wire.buffer).getFloat32(0, true);
    };
    expect(scaleOf([3, -3, 3, -3], 2.5)).toBe(3);
    expect(scaleOf([0.5], 2.5)).toBe(0.5);
    expect(scaleOf(Array(1000).fill(0.1), 2.5)).toBe(Math.fround(0.1));
    expect(scaleOf([1, 0, 0, 0, 0, 0, 0, 0], 0)).toBe(1);
    expect(scaleOf([1, 0, 0, 0, 0, 0, 0, 0], 1)).toBe(Math.fround(Math.sqrt(7) / 8));
  });

  it("reads the code that no encoder writes as +1, and refuses a scale that none writes", () => {
    const wire = new Uint8Array([0, 0, 0, 0, 0b11_10_01_00]);
    new DataView(wire.buffer).setFloat32(0, 0.5, true);
    const sum = new Float32Array(4);
    terngrad().decodeAdd(sum, wire);
    expect([...sum]).toEqual([-0.5, 0, 0.5, 0.5]);
    new DataView(wire.buffer).setFloat32(0, Number.NaN, true);
    expect(() => terngrad().decodeAdd(sum, wire)).toThrow("no encoder writes such a wire");
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      [{}, { block: 64 }, { block: 37, clip: 2 }, { segments: segments(n) }].map((parameters) => ({
        codec: "terngrad",
        parameters,
        call: { seed: Date.now(), step: n, index: 128 },
        x: [...gradients(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, parameters, call }) => {
      const codec = terngrad(parameters);
      const wire = new Uint8Array(codec.wireBytes(x.length));
      codec.encode(wire, new Float32Array(x), call);
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
