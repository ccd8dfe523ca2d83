import { codecs as nativeCodecs } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { implementations } from "../../implementation.ts";
import { readChosen } from "../../shared/indices/indices.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { cosine, dct, inverseDct } from "./dct.ts";
import { dctTopK, definition } from "./dct-top-k.ts";

const { kernels } = implementations(definition, nativeCodecs);

describe("dct-top-k", () => {
  // Gradients: the coefficients of the largest floats are no floats.
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "chunks of 64": { parameters: () => ({ block: 64, k: 8 }), floats: gradients },
      "chunks of a prime": { parameters: () => ({ block: 29, k: 29 }), floats: gradients },
      "chunks of 96, one kept": { parameters: () => ({ block: 96, k: 1, dimensions: 1 }), floats: gradients },
      "squares of 1": { parameters: () => ({ block: 1, k: 1, dimensions: 2 }), floats: gradients },
    },
  });

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))("$by", ({ kernel }) => {
    const encoded = (x: Float32Array, parameters: object) => {
      const bytes = kernel.wireBytes(x.length, parameters);
      const room = new Uint8Array(bytes + 16).fill(0xa5);
      expect(kernel.encode(room.subarray(8, 8 + bytes), x, parameters, {})).toBe(x.length);
      expect([...room.subarray(0, 8), ...room.subarray(8 + bytes)]).toEqual(Array(16).fill(0xa5));
      return room.slice(8, 8 + bytes);
    };
    const decoded = (wire: Uint8Array, n: number, parameters: object) => {
      const sum = new Float32Array(n);
      expect(kernel.decodeAdd(sum, wire, parameters, { scale: 1 })).toBe(true);
      return sum;
    };

    it("does DeMo's worked example", () => {
      const x = new Float32Array([1, -2, 3, 0.5, -0.25, 4, -1, 2]);
      const all = readChosen(encoded(x, { block: 8, k: 8 }), 8, 8)!.map(([, value]) => value);
      const expected = [2.563262, -1.1107538, -0.643083, -0.03613585, -0.26516503, 0.42686343, 5.145587, -0.60328925];
      for (const [j, value] of all.entries()) expect(value).toBeCloseTo(expected[j]!, 6);
      const wire = encoded(x, { block: 8, k: 2 });
      expect(readChosen(wire, 2, 8)!.map(([index]) => index)).toEqual([0, 6]);
      const back = [1.8908155, -1.4707012, 3.2832012, -0.07831556, -0.07831556, 3.2832012, -1.4707012, 1.8908155];
      for (const [i, value] of decoded(wire, 8, { block: 8, k: 2 }).entries()) expect(value).toBeCloseTo(back[i]!, 6);
    });

    it.each([1, 2, 3, 7, 8, 29, 64, 67, 100, 509, 512, 768, 1024, 2048, 4096])(
      "gives back chunks of %i to a millionth when all is kept",
      (block) => {
        const x = gradients(2 * block + Math.floor(block / 3), block).map((value) => value * 8);
        const parameters = { block, k: block };
        const back = decoded(encoded(x, parameters), x.length, parameters);
        const error = Math.max(...back.map((value, i) => Math.abs(value - x[i]!)));
        expect(error).toBeLessThanOrEqual(1e-6 * Math.max(1, ...x.map(Math.abs)));
      },
    );

    it.each([1, 2, 3, 7, 8, 29, 64, 128])("gives back squares of %i to a millionth when all is kept", (block) => {
      const x = gradients(2 * block * block, block).map((value) => value * 8);
      const parameters = { block, k: block * block, dimensions: 2 };
      const back = decoded(encoded(x, parameters), x.length, parameters);
      const error = x.reduce((most, value, i) => Math.max(most, Math.abs(value - back[i]!)), 0);
      expect(error).toBeLessThanOrEqual(4e-6);
    });

    it("equals the definition in the largest chunks, bit for bit", () => {
      const cases: [number, object][] = [
        [2 * 4096 + 1000, { block: 4096, k: 100 }],
        [5000, { block: 1536, k: 1536 }],
        [2 * 128 * 128, { block: 128, k: 500, dimensions: 2 }],
        [3 * 100 * 100, { block: 100, k: 50, dimensions: 2 }],
        [2 * 27 * 27, { block: 27, k: 50, dimensions: 2 }],
      ];
      for (const [n, parameters] of cases) {
        const x = gradients(n, n);
        const wire = encoded(x, parameters);
        const expected = new Uint8Array(wire.length);
        definition.encode(expected, x, parameters, {});
        expect(Buffer.from(wire).equals(expected), JSON.stringify(parameters)).toBe(true);
        const sum = new Float32Array(n);
        definition.decodeAdd(sum, wire, parameters, { scale: 1 });
        const mine = decoded(wire, n, parameters);
        expect(Buffer.from(mine.buffer).equals(Buffer.from(sum.buffer)), JSON.stringify(parameters)).toBe(true);
      }
    });

    it("keeps a slow wave in one coefficient", () => {
      const x = Float32Array.from({ length: 64 }, (_, i) => 3 * Math.cos((Math.PI * (2 * i + 1) * 5) / 128));
      const wire = encoded(x, { block: 64, k: 1 });
      const [[index, value]] = readChosen(wire, 1, 64) as [[number, number]];
      expect(index).toBe(5);
      expect(value).toBeCloseTo(3 * Math.sqrt(32), 4);
      const back = decoded(wire, 64, { block: 64, k: 1 });
      for (const [i, at] of back.entries()) expect(at).toBeCloseTo(x[i]!, 5);
    });

    it("keeps of equal magnitudes the earlier", () => {
      expect(readChosen(encoded(new Float32Array(8), { block: 8, k: 3 }), 3, 8)).toEqual([
        [0, 0],
        [1, 0],
        [2, 0],
      ]);
      // 8 (1/2, √2 cos(π/8)/2, 1/2, …): a larger one between two equals.
      expect(readChosen(encoded(new Float32Array([8, 0, 0, 0]), { block: 4, k: 2 }), 2, 4)).toEqual([
        [0, 4],
        [1, Math.fround(4 * Math.SQRT2 * Math.cos(Math.PI / 8))],
      ]);
      // One float of a chunk of 2: both coefficients are ±x/√2.
      expect(readChosen(encoded(new Float32Array([0, 4]), { block: 2, k: 1 }), 1, 2)![0]![0]).toBe(0);
    });

    it("refuses indices and values that no encoder writes, in any chunk, and adds nothing", () => {
      const parameters = { block: 100, k: 2 };
      const n = 250; // two chunks of two bytes of indices and two floats, and a short one with indices of 6 bits
      const good = encoded(gradients(n, 1), parameters);
      expect(good.length).toBe(30);
      const patched = (chunk: number, indices: [number, number], values: [number, number]) => {
        const wire = good.slice();
        const packed = indices[0] | (indices[1] << (chunk === 2 ? 6 : 7));
        const view = new DataView(wire.buffer, 10 * chunk);
        view.setUint16(0, packed, true);
        values.forEach((value, j) => {
          view.setFloat32(2 + 4 * j, value, true);
        });
        return wire;
      };
      const taken = (wire: Uint8Array) => {
        const sum = new Float32Array(n).fill(7);
        const good = kernel.decodeAdd(sum, wire, parameters, { scale: 1 });
        if (!good) expect(sum.every((value) => value === 7)).toBe(true);
        return good;
      };
      const largest = 3.4028234663852886e38;
      for (const chunk of [0, 1, 2]) {
        const last = chunk === 2 ? 49 : 99;
        expect(taken(patched(chunk, [0, last], [1, 2]))).toBe(true);
        expect(taken(patched(chunk, [0, last + 1], [1, 2]))).toBe(false);
        expect(taken(patched(chunk, [3, 3], [1, 2]))).toBe(false);
        expect(taken(patched(chunk, [4, 3], [1, 2]))).toBe(false);
        expect(taken(patched(chunk, [0, last], [Number.NaN, 2]))).toBe(false);
        expect(taken(patched(chunk, [0, last], [1, Number.NEGATIVE_INFINITY]))).toBe(false);
        expect(taken(patched(chunk, [0, last], [largest, 0]))).toBe(true);
        expect(taken(patched(chunk, [0, last], [largest, -largest]))).toBe(false);
      }
    });

    it("refuses floats whose coefficients do not fit, by the largest of their chunk", () => {
      const x = new Float32Array(24).fill(1);
      x.fill(3e38, 8, 16);
      x[13] = -3.3e38;
      x[3] = 3.4e38; // alone in its chunk it fits
      const wire = new Uint8Array(kernel.wireBytes(24, { block: 8, k: 1 }));
      expect(kernel.encode(wire, x, { block: 8, k: 1 }, {})).toBe(13);
      x.fill(1, 8, 16);
      expect(kernel.encode(wire, x, { block: 8, k: 1 }, {})).toBe(24);
      expect(kernel.encode(new Uint8Array(105), x, { block: 8, k: 8 }, {})).toBe(3); // all eight together do not
    });

    it("lets what was sent and what waits add up to what came", () => {
      const n = 640;
      const parameters = { block: 64, k: 4 };
      const wire = new Uint8Array(kernel.wireBytes(n, parameters));
      const came = new Float64Array(n);
      const sent = new Float32Array(n);
      const error = new Float32Array(n);
      for (let step = 0; step < 40; step++) {
        const x = gradients(n, step);
        for (let i = 0; i < n; i++) {
          came[i]! += x[i]!;
          error[i]! += x[i]!;
        }
        expect(kernel.encode(wire, error, parameters, {})).toBe(n);
        kernel.decodeAdd(error, wire, parameters, { scale: -1 });
        kernel.decodeAdd(sent, wire, parameters, { scale: 1 });
      }
      const apart = came.reduce((most, value, i) => Math.max(most, Math.abs(value - sent[i]! - error[i]!)), 0);
      expect(apart).toBeLessThan(1e-5);
      expect(sent.some((value) => Math.abs(value) > 1)).toBe(true);
    });
  });

  it("takes as many bits per index as a chunk's places need", () => {
    const bytes = (n: number, block: number, k: number, dimensions?: 1 | 2) =>
      dctTopK({ block, k, dimensions }).wireBytes(n);
    expect([1, 2, 255, 256, 257, 4096].map((block) => bytes(block, block, 1) - 4)).toEqual([0, 1, 1, 1, 2, 2]);
    expect(bytes(768 * 768, 64, 32, 2)).toBe(144 * (32 * 4 + (32 * 12) / 8)); // DeMo's matrix of 768 × 768
    expect(bytes(130, 64, 8)).toBe(2 * (6 + 32) + (1 + 8)); // of the last two floats both coefficients are kept
    expect(bytes(0, 64, 8)).toBe(0);
  });

  it("has cosines that are the language's own to 2⁻⁵¹, and to 1 ulp in fp32", () => {
    for (const q of [1, 2, 3, 5, 64, 67, 1000, 4096, 8192]) {
      for (let p = 0; p < q; p++) {
        const mine = cosine(p, q);
        const theirs = Math.cos((Math.PI * p) / (2 * q)); // of an angle that is rounded already
        const apart = Math.abs(Math.fround(mine) - Math.fround(theirs));
        if (Math.abs(mine - theirs) > 2 ** -51 || apart > 2 ** -23 * theirs)
          expect.fail(`cos(π ${p} / ${2 * q}): ${mine}, and Math.cos says ${theirs}`);
      }
    }
    expect([cosine(0, 7), cosine(7, 7)]).toEqual([1, 0]);
  });

  it("transforms orthonormally: lengths and angles stay as they are", () => {
    for (const c of [1, 2, 6, 31, 40, 256]) {
      const x = Float64Array.from(gradients(c, 1));
      const y = Float64Array.from(gradients(c, 2));
      const product = (a: Float64Array, b: Float64Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
      expect(product(dct(x), dct(y))).toBeCloseTo(product(x, y), 12);
      expect(product(inverseDct(x), y)).toBeCloseTo(product(x, dct(y)), 12);
    }
  });

  it("refuses parameters that it does not know, in one sentence each", () => {
    expect(() => dctTopK({ block: 0, k: 1 })).toThrow(
      "dct-top-k: block is 0, and must be a whole number, from 1 to 4096",
    );
    expect(() => dctTopK({ block: 4097, k: 1 })).toThrow("from 1 to 4096");
    expect(() => dctTopK({ block: 129, k: 1, dimensions: 2 })).toThrow("from 1 to 128");
    expect(() => dctTopK({ block: 8, k: 9 })).toThrow("dct-top-k: k is 9, and must be a whole number, from 1 to 8");
    expect(() => dctTopK({ block: 8, k: 65, dimensions: 2 })).toThrow("from 1 to 64");
    expect(() => dctTopK({ block: 8, k: 8, dimensions: 3 as 2 })).toThrow("dimensions is 3");
    expect(() => dctTopK({ block: 8, k: 8, dimensions: 2 }).wireBytes(100)).toThrow(
      "100 floats are no whole number of squares of 8 × 8; in two dimensions n must be a multiple of 64",
    );
    expect(() => codecNamed("dct-top-k", { k: 1 })).toThrow("block is undefined");
    expect(() => codecNamed("dct-top-k", { block: 8, k: 1, bits: 2 })).toThrow(", not bits.");
  });

  it.skipIf(!python)(`equals numpy's cosines, and its matrix products on other inputs${needsPython}`, () => {
    for (const q of [67, 4096]) {
      const [theirs] = askNumpy([{ codec: "dct-top-k", cosines: q }]) as [number[]];
      const apart = theirs.map((value, p) => Math.abs(value - cosine(p, q)));
      expect(Math.max(...apart)).toBeLessThanOrEqual(2 ** -51);
    }
    // Always the same inputs: two ways to add need not round alike, and once in many million numbers it would show.
    const requests = [
      { n: 6000, parameters: { block: 64, k: 8 } },
      { n: 4096, parameters: { block: 509, k: 40 } },
      { n: 6000, parameters: { block: 4096, k: 100 } },
      { n: 3 * 64 * 64, parameters: { block: 64, k: 32, dimensions: 2 as const } },
      { n: 128 * 128, parameters: { block: 128, k: 500, dimensions: 2 as const } },
    ].map(({ n, parameters }) => ({ codec: "dct-top-k", parameters, x: [...gradients(n, n)] }));
    const wires = requests.map(({ x, parameters }) => {
      const wire = new Uint8Array(dctTopK(parameters).wireBytes(x.length));
      dctTopK(parameters).encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
