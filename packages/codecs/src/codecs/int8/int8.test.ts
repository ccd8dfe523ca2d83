import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { definition, int8 } from "./int8.ts";

/** Segments of every kind: an empty one, odd ends, a last one of one element. */
const segments = (n: number): number[] => [
  0,
  Math.floor(n / 3),
  n - Math.floor(n / 3) - Math.min(n, 1),
  Math.min(n, 1),
];

describe("int8", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "one scale": { floats: gradients },
      "one scale, the whole range of fp32": {},
      "blocks of 24": { parameters: () => ({ block: 24 }), floats: gradients },
      "blocks of 100, most of them zero": {
        parameters: () => ({ block: 100 }),
        floats: (n, seed) => anyFloats(n, seed).map((x, i) => (i % 300 < 100 ? x : i % 2 ? 0 : -0)),
      },
      segments: { parameters: (n) => ({ segments: segments(n) }), floats: gradients },
    },
  });

  it("takes a byte per float and four per scale group", () => {
    expect([0, 1, 9].map(int8().wireBytes)).toEqual([0, 5, 13]);
    expect(int8({ block: 100 }).wireBytes(1001)).toBe(4 * 11 + 1001);
  });

  it("says which parameter is wrong, and how", () => {
    expect(() => int8({ block: 1.5 })).toThrow("int8: block is 1.5, and must be a whole number, 1 or more.");
    expect(() => codecNamed("int8", { bits: 8 })).toThrow("int8 takes block, segments, not bits.");
    expect(() => int8({ segments: [3, 4] }).wireBytes(8)).toThrow(
      "they add up to 7 floats, and there are 8; give lengths that add up to that.",
    );
  });

  it("errs by half a level at most, and not at the largest", () => {
    const n = 4096;
    for (const parameters of [{}, { block: 128 }]) {
      const x = gradients(n, 7);
      const codec = int8(parameters);
      const wire = new Uint8Array(codec.wireBytes(n));
      const decoded = new Float32Array(n);
      codec.encode(wire, x);
      codec.decodeAdd(decoded, wire);
      let worst = 0;
      for (let begin = 0; begin < n; begin += parameters.block ?? n) {
        const end = begin + (parameters.block ?? n);
        const scale = Math.max(...x.subarray(begin, end).map(Math.abs));
        for (let i = begin; i < end; i++) {
          const error = Math.abs(decoded[i]! - x[i]!) / (scale / 127);
          expect(error).toBeLessThan(0.5 + 1e-5); // of a level, and fp32's rounding
          worst = Math.max(worst, error);
          if (Math.abs(x[i]!) === scale) expect(decoded[i]).toBe(x[i]);
        }
      }
      expect(worst).toBeGreaterThan(0.45);
    }
  });

  it("refuses −128 where it would be infinite, and reads it where it is a number", () => {
    const wire = new Uint8Array(4 + 3).fill(1);
    wire[5] = 0x80;
    const sum = new Float32Array(3);
    const scale = new DataView(wire.buffer);
    scale.setFloat32(0, 3.4028234663852886e38, true);
    expect(() => int8().decodeAdd(sum, wire)).toThrow("no encoder writes such a wire");
    expect([...sum]).toEqual([0, 0, 0]);
    scale.setFloat32(0, 127, true);
    int8().decodeAdd(sum, wire);
    expect([...sum]).toEqual([1, -128, 1]);
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      [{}, { block: 64 }, { block: 37 }, { segments: segments(n) }].map((parameters) => ({
        codec: "int8",
        parameters,
        x: [...gradients(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, parameters }) => {
      const codec = int8(parameters);
      const wire = new Uint8Array(codec.wireBytes(x.length));
      codec.encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
