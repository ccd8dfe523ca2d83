import { codecs as nativeCodecs } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { implementations } from "../../implementation.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyBytes, anyFloats, gradients, random } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { definition, topK } from "./top-k.ts";

const { kernels } = implementations(definition, nativeCodecs);

/** All places, by falling magnitude, the earlier of equals first: the first k are to be kept. */
const byMagnitude = (x: Float32Array): number[] =>
  Array.from(x, (value, i) => ({ magnitude: Math.abs(value), i }))
    .sort((a, b) => b.magnitude - a.magnitude || a.i - b.i)
    .map(({ i }) => i);

describe("top-k", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      one: { parameters: () => ({ k: 1 }), least: 1 },
      "a tenth": { parameters: (n) => ({ k: Math.ceil(n / 10) }), least: 1 },
      "a half, of numbers like gradients": {
        parameters: (n) => ({ k: Math.ceil(n / 2) }),
        floats: gradients,
        least: 1,
      },
      all: { parameters: (n) => ({ k: n }), least: 1 },
      "a third, of few magnitudes": {
        parameters: (n) => ({ k: Math.ceil(n / 3) }),
        floats: (n, seed) => Float32Array.from(anyBytes(n, seed), (byte) => (byte % 7) - 3),
        least: 1,
      },
    },
  });

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))("$by", ({ kernel }) => {
    // Beyond 4096 floats the C samples first; each of these makes a sample say something else.
    const next = random(11);
    const inputs: Record<string, (i: number, n: number) => number> = {
      "all the same": () => -3,
      "all zero but one": (i, n) => (i === n - 7 ? 1e-30 : 0),
      "a period of 64": (i) => (i % 64 === 0 ? 1 + i / 1e6 : 1e-3 * next()),
      "a few far larger than the rest": (i) => (i % 5003 === 17 ? 1e30 + i : next() - 0.5),
      rising: (i) => i,
      "steep as exponentials": () => (next() - 0.5) * 2 ** (-100 * next()),
      "equal but for the last bit": (i) => 1 + (i % 3) * 2 ** -23,
    };
    it.each(Object.keys(inputs))("keeps exactly the largest, the earlier of equals: %s", (how) => {
      for (const n of [4095, 4096, 20_011, ...(kernel === definition ? [] : [100_000])]) {
        const x = Float32Array.from({ length: n }, (_, i) => inputs[how]!(i, n));
        const places = byMagnitude(x);
        for (const k of [1, 2, 63, n / 100, n / 2, n - 1, n].map(Math.floor)) {
          const wire = new Uint8Array(kernel.wireBytes(n, { k }));
          expect(kernel.encode(wire, x, { k }, {})).toBe(n);
          const sum = new Float32Array(n);
          expect(kernel.decodeAdd(sum, wire, { k }, { scale: 1 })).toBe(true);
          const expected = new Float32Array(n);
          for (const i of places.slice(0, k)) expected[i]! += x[i]!;
          expect(Buffer.from(sum.buffer).equals(Buffer.from(expected.buffer)), `n = ${n}, k = ${k}`).toBe(true);
        }
      }
    });

    it("names the first NaN of a long vector, wherever a sample looked", () => {
      const x = gradients(50_000, 4);
      const wire = new Uint8Array(kernel.wireBytes(x.length, { k: 500 }));
      for (const first of [0, 1, 31_234, 49_999]) {
        const bad = x.slice();
        bad.fill(Number.NaN, first, first + 3);
        expect(kernel.encode(wire, bad, { k: 500 }, {})).toBe(first);
      }
    });

    it("refuses indices that do not ascend or lead outside, and values that are not finite, and adds nothing", () => {
      const n = 300; // indices of 9 bits
      const k = 3;
      const wire = (indices: number[], values: number[]) => {
        const bytes = new Uint8Array(kernel.wireBytes(n, { k }));
        let bits = 0n;
        indices.forEach((index, j) => {
          bits |= BigInt(index) << BigInt(9 * j);
        });
        for (let b = 0; b < 4; b++) bytes[b] = Number((bits >> BigInt(8 * b)) & 255n);
        values.forEach((value, j) => {
          new DataView(bytes.buffer).setFloat32(4 + 4 * j, value, true);
        });
        return bytes;
      };
      const added = (indices: number[], values = [1, 2, 4]) => {
        const room = new Float32Array(n + 300).fill(7);
        const good = kernel.decodeAdd(room.subarray(100, 100 + n), wire(indices, values), { k }, { scale: 1 });
        const changed = [...room.keys()].filter((i) => room[i] !== 7).map((i) => [i - 100, room[i]! - 7]);
        return good ? changed : { refused: changed };
      };
      expect(added([0, 7, 299])).toEqual([[0, 1], [7, 2], [299, 4]]); // biome-ignore format: pairs
      const nothing = { refused: [] };
      expect(added([0, 7, 300])).toEqual(nothing);
      expect(added([0, 7, 511])).toEqual(nothing);
      expect(added([0, 7, 7])).toEqual(nothing);
      expect(added([8, 7, 9])).toEqual(nothing);
      expect(added([0, 0, 1])).toEqual(nothing);
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        for (const at of [0, 1, 2]) expect(added([0, 7, 299], [1, 2, 4].with(at, value))).toEqual(nothing);
      }
    });

    it("sends each number as it is: what was sent and what waits add up to what came, exactly", () => {
      const n = 1000;
      const parameters = { k: 30 };
      const wire = new Uint8Array(kernel.wireBytes(n, parameters));
      const came = new Float64Array(n);
      const sent = new Float32Array(n);
      const error = new Float32Array(n);
      for (let step = 0; step < 20; step++) {
        // Whole numbers: all of these sums are exact in fp32.
        const x = Float32Array.from(anyBytes(n, step), (byte) => byte - 128);
        for (let i = 0; i < n; i++) {
          came[i]! += x[i]!;
          error[i]! += x[i]!;
        }
        expect(kernel.encode(wire, error, parameters, {})).toBe(n);
        kernel.decodeAdd(error, wire, parameters, { scale: -1 });
        kernel.decodeAdd(sent, wire, parameters, { scale: 1 });
      }
      expect(Array.from(sent, (value, i) => value + error[i]!)).toEqual([...came]);
      expect(error.filter((value) => value === 0).length).toBeGreaterThanOrEqual(30);
    });
  });

  it("keeps of equal magnitudes the earlier, whatever their signs", () => {
    const wire = new Uint8Array(topK({ k: 3 }).wireBytes(8));
    topK({ k: 3 }).encode(wire, new Float32Array([1, -2, 0, 2, -1, 1, 2, 2]));
    const sum = new Float32Array(8);
    topK({ k: 3 }).decodeAdd(sum, wire, { scale: 10 });
    expect([...sum]).toEqual([0, -20, 0, 20, 0, 0, 20, 0]);
  });

  it("takes as many bits per index as the places need", () => {
    const bits = (n: number) => (topK({ k: 1 }).wireBytes(n) - 4) * 8;
    expect([1, 2, 3, 255, 256, 257, 65_536, 65_537, 2 ** 32, 2 ** 32 + 1].map(bits)).toEqual(
      [0, 1, 2, 8, 8, 9, 16, 17, 32, 33].map((width) => 8 * Math.ceil(width / 8)),
    );
    expect([8, 9].map((n) => topK({ k: 8 }).wireBytes(n))).toEqual([3 + 32, 4 + 32]);
    for (const n of [1, 2, 255, 256, 257, 65_537]) {
      const x = new Float32Array(n);
      x[n - 1] = -1;
      const wire = new Uint8Array(topK({ k: 1 }).wireBytes(n));
      topK({ k: 1 }).encode(wire, x);
      const sum = new Float32Array(n);
      topK({ k: 1 }).decodeAdd(sum, wire);
      expect(sum.indexOf(-1), `n = ${n}`).toBe(n - 1);
    }
  });

  it("refuses a k that is none, or more than there are floats, in one sentence each", () => {
    expect(() => topK({ k: 0 })).toThrow("top-k: k is 0, and must be a whole number, 1 or more.");
    expect(() => topK({ k: 2.5 })).toThrow("top-k: k is 2.5");
    expect(() => topK({ k: 5 }).wireBytes(3)).toThrow(
      "top-k: k is 5, and of 3 floats at most 3 can be kept; take a smaller k.",
    );
    expect(() => topK({ k: 5 }).encode(new Uint8Array(20), new Float32Array(3))).toThrow("k is 5, and of 3 floats");
    expect(() => codecNamed("top-k")).toThrow("k is undefined");
    expect(() => codecNamed("top-k", { k: 1, block: 64 })).toThrow("top-k takes k, not block.");
  });

  it.skipIf(!python)(`equals numpy's stable sort on fresh inputs${needsPython}`, () => {
    const requests = [1, 2, 100, 257, 5000, 70_000].map((n) => {
      const x = anyFloats(n, Date.now() + n);
      // JSON has no −0
      return { codec: "top-k", parameters: { k: Math.ceil(n / 7) }, x: Array.from(x, (value) => value + 0) };
    });
    const wires = requests.map(({ x, parameters }) => {
      const wire = new Uint8Array(topK(parameters).wireBytes(x.length));
      topK(parameters).encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
