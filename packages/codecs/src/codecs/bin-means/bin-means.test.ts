import { codecs as nativeCodecs } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import type { Codec } from "../../codec.ts";
import { codecNamed } from "../../codecs.ts";
import { implementations } from "../../implementation.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { fromHex, toHex } from "../../testing/hex.ts";
import { gradients, random } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { binMeans, definition } from "./bin-means.ts";

const { kernels } = implementations(definition, nativeCodecs);

/** Segments of every kind: an empty one, odd ends, a last one of one element. */
const segments = (n: number): number[] => [
  0,
  Math.floor(n / 3),
  n - Math.floor(n / 3) - Math.min(n, 1),
  Math.min(n, 1),
];

/** Normal numbers, by Box and Muller. */
function normal(n: number, seed: number): Float32Array {
  const next = random(seed);
  return Float32Array.from({ length: n }, () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()));
}

const norm = (x: Float32Array): number => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));

/**
 * once: the error of one pass over normal numbers. left: what 50 rounds of 4 ranks, with error feedback both ways, have
 * not sent of the mean. Both relative to what is sent.
 */
function errors(codec: Codec) {
  const n = 5000;
  const zeros = () => new Float32Array(n);
  const wire = new Uint8Array(codec.wireBytes(n));
  const x = normal(n, 1);
  const decoded = zeros();
  codec.encode(wire, x);
  codec.decodeAdd(decoded, wire);
  const wires = Array.from({ length: 4 }, () => new Uint8Array(wire.length));
  const [errors, owners] = [wires.map(zeros), zeros()];
  const [common, sent, wanted] = [normal(n, 2), zeros(), zeros()];
  let mean = zeros();
  for (let round = 0; round < 50; round++) {
    const gradients = wires.map((_, r) => normal(n, 3 + 4 * round + r).map((own, i) => own + 0.5 * common[i]!));
    for (const [r, one] of wires.entries()) codec.encodeWithFeedback(one, gradients[r]!, errors[r]!);
    codec.encodeSumWithFeedback(wire, wires, owners, { scale: 1 / 4 });
    codec.decodeAdd(sent, wire);
    mean = zeros().map((_, i) => gradients.reduce((sum, g) => sum + g[i]! / 4, 0));
    for (const [i, g] of mean.entries()) wanted[i]! += g;
  }
  const difference = (a: Float32Array, b: Float32Array) => norm(a.map((value, i) => value - b[i]!));
  return { once: difference(decoded, x) / norm(x), left: difference(sent, wanted) / norm(mean) };
}

describe("bin-means", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "4 bits": { parameters: () => ({ bits: 4 }), floats: gradients },
      "4 bits, the whole range of fp32": { parameters: () => ({ bits: 4 }) },
      "3 bits": { parameters: () => ({ bits: 3 }), floats: gradients },
      "2 bits": { parameters: () => ({ bits: 2 }), floats: gradients },
      "4 bits, blocks of 100, most of them zero": {
        parameters: () => ({ bits: 4, block: 100 }),
        floats: (n, seed) => gradients(n, seed).map((x, i) => (i % 300 < 100 ? x : i % 2 ? 0 : -0)),
      },
      "2 bits, blocks of 7": { parameters: () => ({ bits: 2, block: 7 }), floats: gradients },
      "3 bits, segments": { parameters: (n) => ({ bits: 3, segments: segments(n) }), floats: gradients },
    },
  });

  it("takes 2^bits floats a scale group, and then its bits an element; 4 bits unless told", () => {
    expect([0, 1, 9].map(binMeans().wireBytes)).toEqual([0, 65, 69]);
    expect(binMeans().parameters).toEqual({ bits: 4 });
    expect(binMeans({ bits: 2 }).wireBytes(1001)).toBe(4 * 4 + 251);
    expect(binMeans({ bits: 3, block: 100 }).wireBytes(1001)).toBe(4 * 8 * 11 + 376);
  });

  it("says which parameter is wrong, and how", () => {
    for (const bits of [1, 5, 2.5])
      expect(() => binMeans({ bits })).toThrow(`bin-means: bits is ${bits}, and must be a whole number, from 2 to 4.`);
    expect(() => codecNamed("bin-means", { width: 8 })).toThrow("bin-means takes bits, block, segments, not width.");
    expect(() => binMeans({ block: 4, segments: [4] })).toThrow("both block and segments are given");
    expect(() => binMeans({ segments: [3, 4] }).wireBytes(8)).toThrow("they add up to 7 floats, and there are 8");
    expect(() => binMeans().scales(new Float32Array(4))).toThrow("computes no scales apart from encoding");
  });

  it("sends the index of the nearest entry, and of the lower of two equally near ones", () => {
    for (const bits of [2, 3, 4]) {
      const m = 2 ** bits;
      // Small whole numbers, so that many lie halfway between two entries.
      for (const x of [normal(3000, bits), normal(3000, bits).map((value) => Math.round(2 * value))]) {
        const codec = binMeans({ bits });
        const wire = new Uint8Array(codec.wireBytes(x.length));
        codec.encode(wire, x);
        const table = new Float32Array(wire.slice(0, 4 * m).buffer);
        expect([...table]).toEqual([...table].sort((a, b) => a - b));
        const decoded = new Float32Array(x.length);
        codec.decodeAdd(decoded, wire);
        for (const [i, value] of x.entries()) {
          const distances = Array.from(table, (entry) => Math.abs(value - entry));
          expect(decoded[i]).toBe(table[distances.indexOf(Math.min(...distances))]);
        }
      }
    }
  });

  // Measured in NumPy before there was this codec, as `once` and `left` below are: l1 of 4 bits has 0.199 and 1.77,
  // of 2 bits 0.479 and 1.04; the bins themselves in place of the nearest entry, 2 bits, have 0.424 and 1.28.
  it.each([
    { bits: 4, once: 0.11, left: 0.14 },
    { bits: 2, once: 0.382, left: 0.65 },
  ])("errs less than l1 of as many bits, in one pass and with error feedback both ways: $bits bits", (known) => {
    const ours = errors(codecNamed("bin-means", { bits: known.bits }));
    const levels = errors(codecNamed("l1", { bits: known.bits }));
    expect(Math.abs(ours.once / known.once - 1)).toBeLessThan(0.03);
    expect(Math.abs(ours.left / known.left - 1)).toBeLessThan(0.2);
    expect(levels.once).toBeGreaterThan(1.2 * ours.once);
    expect(levels.left).toBeGreaterThan(1.4 * ours.left);
  });

  it.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))(
    "refuses a table that is not finite, and adds nothing then: $by",
    ({ kernel }) => {
      for (const bad of ["0000807f", "000080ff", "0000c07f"]) {
        const wire = new Uint8Array(kernel.wireBytes(70, { bits: 2, block: 35 }));
        wire.set(fromHex(bad), 4 * 7);
        const sum = new Float32Array(70).fill(3);
        expect(kernel.decodeAdd(sum, wire, { bits: 2, block: 35 }, { scale: 1 })).toBe(false);
        expect(sum.every((value) => value === 3)).toBe(true);
      }
    },
  );

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const lengths = [1, 64, 257, 5000, 150_001]; // the last one is summed in three chunks
    const requests = lengths.flatMap((n) =>
      [{ bits: 4 }, { bits: 2, block: 64 }, { bits: 3, block: 37 }, { bits: 2, segments: segments(n) }].map(
        (parameters) => ({ codec: "bin-means", parameters, x: [...gradients(n, Date.now() + n)] }),
      ),
    );
    const wires = requests.map(({ x, parameters }) => {
      const codec = codecNamed("bin-means", parameters);
      const wire = new Uint8Array(codec.wireBytes(x.length));
      codec.encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
