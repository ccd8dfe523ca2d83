import { codecs as nativeCodecs, type Parameters } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { implementations } from "../../implementation.ts";
import { withFeedback } from "../../plain-feedback.ts";
import { indexCodings } from "../../shared/indices/indices.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyBytes, anyFloats, gradients, random } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { valueCodings } from "./kept-values.ts";
import { definition, type TopKParameters, topK } from "./top-k.ts";

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
      "a tenth, Elias–Fano": { parameters: (n) => ({ k: Math.ceil(n / 10), indices: "elias-fano" }), least: 1 },
      "a twentieth, Elias–Fano, halves": {
        parameters: (n) => ({ k: Math.ceil(n / 20), indices: "elias-fano", values: "f16" }),
        floats: gradients,
        least: 1,
      },
      "a seventh, Elias–Fano, 2 bits": {
        parameters: (n) => ({ k: Math.ceil(n / 7), indices: "elias-fano", values: "2bit" }),
        floats: gradients,
        least: 1,
      },
      "a half, as a bitmap, 2 bits of any floats": {
        parameters: (n) => ({ k: Math.ceil(n / 2), indices: "elias-fano", values: "2bit" }),
        least: 1,
      },
      "a fifth, signs": { parameters: (n) => ({ k: Math.ceil(n / 5), values: "sign" }), least: 1 },
      "one, Elias–Fano, its sign": {
        parameters: () => ({ k: 1, indices: "elias-fano", values: "sign" }),
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

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))(
    "shorter wires by $by",
    ({ kernel }) => {
      const decoded = (wire: Uint8Array, n: number, parameters: Parameters) => {
        const sum = new Float32Array(n);
        return kernel.decodeAdd(sum, wire, parameters, { scale: 1 }) ? sum : undefined;
      };
      const encoded = (x: Float32Array, parameters: Parameters) => {
        const wire = new Uint8Array(kernel.wireBytes(x.length, parameters)).fill(0xa5);
        expect(kernel.encode(wire, x, parameters, {})).toBe(x.length);
        return wire;
      };

      it("give back any set of indices, and take k l + k + ⌊n / 2^l⌋ bits, or n", () => {
        const next = random(5);
        for (const n of [1, 2, 3, 7, 8, 63, 64, 65, 1000, 4097, 20_000])
          for (const share of [0, 0.001, 1 / 64, 1 / 16, 0.2, 0.25, 0.26, 0.5, 1]) {
            const k = Math.max(1, Math.floor(share * n));
            const x = new Float32Array(n);
            const places = Array.from({ length: n }, (_, i) => i).sort(() => next() - 0.5);
            // Some at the ends, where the last mark of Elias–Fano and the last bit of a bitmap are.
            const chosen = new Set([n - 1, 0, ...places].filter((i) => i >= 0).slice(0, k + 2));
            for (const i of [...chosen].slice(0, k)) x[i] = i + 1;
            const parameters = { k, indices: "elias-fano" } as const;
            const wire = encoded(x, parameters);
            const low = Math.floor(Math.log2(n / k));
            const bits = Math.min(n, k * low + k + Math.floor(n / 2 ** low));
            expect(wire.length, `n = ${n}, k = ${k}`).toBe(Math.ceil(bits / 8) + 4 * k);
            expect(decoded(wire, n, parameters), `n = ${n}, k = ${k}`).toEqual(x);
          }
      });

      it("refuse other than k marks, marks or bits behind the last, and indices that do not ascend below n", () => {
        const refuses = (bits: string, n: number, k: number) => {
          const parameters = { k, indices: "elias-fano" } as const;
          const wire = new Uint8Array(kernel.wireBytes(n, parameters));
          [...bits.replaceAll(" ", "")].forEach((bit, at) => {
            wire[at >> 3]! |= Number(bit) << (at & 7);
          });
          new Float32Array(k).fill(1).forEach((value, j) => {
            new DataView(wire.buffer).setFloat32(wire.length - 4 * k + 4 * j, value, true);
          });
          const sum = decoded(wire, n, parameters);
          return sum ? [...sum.keys()].filter((i) => sum[i] === 1) : "refused";
        };
        // n = 30, k = 3: 3 low bits each, then 3 + 3 marks. The low bits are least significant first.
        expect(refuses("100 010 011  101010 0", 30, 3)).toEqual([1, 10, 22]);
        expect(refuses("100 100 010  111000 0", 30, 3)).toBe("refused"); // 1, 1, 2
        expect(refuses("010 100 010  111000 0", 30, 3)).toBe("refused"); // 2, 1, 2
        expect(refuses("100 010 011  101000 0", 30, 3)).toBe("refused"); // two marks
        expect(refuses("100 010 011  101110 0", 30, 3)).toBe("refused"); // four
        expect(refuses("100 010 011  000000 0", 30, 3)).toBe("refused");
        expect(refuses("100 010 011  101000 1", 30, 3)).toBe("refused"); // the third is behind the last mark
        expect(refuses("100 010 011  101010 1", 30, 3)).toBe("refused");
        expect(refuses("100 010 011  100011 0", 30, 3)).toBe("refused"); // 1, 26, 30
        expect(refuses("100 010 101  100011 0", 30, 3)).toEqual([1, 26, 29]);
        // n = 10, k = 4: a bitmap.
        expect(refuses("1011000001 000000", 10, 4)).toEqual([0, 2, 3, 9]);
        expect(refuses("1011000000 000000", 10, 4)).toBe("refused");
        expect(refuses("1011000011 000000", 10, 4)).toBe("refused");
        expect(refuses("1011000000 100000", 10, 4)).toBe("refused");
        expect(refuses("1011000001 000001", 10, 4)).toBe("refused");
      });

      it("refuse a table that is not finite, a negative magnitude, and bits behind the values", () => {
        const x = gradients(100, 3);
        for (const values of ["2bit", "sign"] as const) {
          const parameters = { k: 5, indices: "elias-fano", values } as const;
          const good = encoded(x, parameters);
          const changed = (change: (wire: Uint8Array, view: DataView) => void) => {
            const wire = good.slice();
            change(wire, new DataView(wire.buffer));
            return decoded(wire, 100, parameters);
          };
          expect(changed(() => {})).toBeDefined();
          for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
            for (let q = 0; q < (values === "sign" ? 1 : 4); q++)
              expect(changed((_, view) => view.setFloat32(4 * q, value, true))).toBeUndefined();
          expect(changed((_, view) => view.setFloat32(0, -1, true)) === undefined).toBe(values === "sign");
          expect(changed((_, view) => view.setFloat32(0, -0, true)) === undefined).toBe(values === "sign");
          for (let bit = values === "sign" ? 5 : 2; bit < 8; bit++)
            expect(changed((wire) => (wire[wire.length - 1]! |= 1 << bit))).toBeUndefined();
        }
        const half = { k: 5, values: "f16" } as const;
        const wire = encoded(x, half);
        wire[wire.length - 1] = 0x7c;
        expect(decoded(wire, 100, half)).toBeUndefined();
      });

      it("name the first kept float that no half can be", () => {
        const x = gradients(100, 3);
        x[40] = 65_520;
        x[70] = -1e9;
        const wire = (k: number) => new Uint8Array(kernel.wireBytes(100, { k, values: "f16" }));
        expect(kernel.encode(wire(1), x, { k: 1, values: "f16" }, {})).toBe(70);
        expect(kernel.encode(wire(9), x, { k: 9, values: "f16" }, {})).toBe(40);
        x[40] = 65_519;
        x[70] = 0;
        expect(kernel.encode(wire(9), x, { k: 9, values: "f16" }, {})).toBe(100);
      });

      it("mean by 2 bits the mean of each of four equal bins over μ ± 3 σ", () => {
        const x = new Float32Array(50);
        x.set([7, 1, -1, 1, 0, -7, -1, 0, 1, -1], 20);
        const parameters = { k: 8, indices: "elias-fano", values: "2bit" } as const;
        // μ = 0, σ = √13 = 3.6, so that the borders are −5.4, 0 and 5.4.
        expect(decoded(encoded(x, parameters), 50, parameters)).toEqual(x);
        x[20] = 9;
        x[29] = -2;
        // Σ = 1, σ² = (81 + 49 + 4 + 5) / 8 − 1/64: the bins are {−7}, {−1, −1, −2}, {1, 1, 1} and {9}.
        const expected = x.slice();
        for (const i of [22, 26, 29]) expected[i] = Math.fround(-4 / 3);
        expect(decoded(encoded(x, parameters), 50, parameters)).toEqual(expected);
      });

      it("mean by a sign the mean magnitude, and a zero counts as plus", () => {
        const x = Float32Array.of(0, 3, -0, -4, 0, 0, 0.5, 0);
        const parameters = { k: 3, values: "sign" } as const;
        expect([...decoded(encoded(x, parameters), 8, parameters)!]).toEqual([0, 2.5, 0, -2.5, 0, 0, 2.5, 0]);
        const more = { k: 5, values: "sign" } as const;
        expect([...decoded(encoded(x, more), 8, more)!]).toEqual([1.5, 1.5, 1.5, -1.5, 0, 0, 1.5, 0]);
      });

      it.each(["f16", "2bit", "sign"] as const)("conserve with error feedback what came: %s", (values) => {
        const n = 4000;
        const parameters = { k: 60, indices: "elias-fano", values } as const;
        const wire = new Uint8Array(kernel.wireBytes(n, parameters));
        const [came, sent] = [new Float64Array(n), new Float64Array(n)];
        const error = new Float32Array(n);
        let most = 0;
        for (let step = 0; step < 30; step++) {
          const x = gradients(n, step);
          for (const [i, value] of x.entries()) came[i]! += value;
          most = Math.max(most, ...x.map(Math.abs), ...error.map(Math.abs));
          if (kernel.encodeWithFeedback) expect(kernel.encodeWithFeedback(wire, x, error, parameters, {})).toBe(n);
          else expect(withFeedback(kernel, wire, x, error, parameters, {})).toBe(n);
          for (const [i, value] of decoded(wire, n, parameters)!.entries()) sent[i]! += value;
        }
        // Each step rounds a sum and a difference in fp32.
        const off = came.map((value, i) => Math.abs(value - sent[i]! - error[i]!));
        expect(Math.max(...off)).toBeLessThan(30 * 2 * most * 2 ** -23);
        expect(sent.filter((value) => value !== 0).length).toBeGreaterThan(200);
      });
    },
  );

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
    expect(() => codecNamed("top-k", { k: 1, block: 64 })).toThrow("top-k takes k, indices, values, not block.");
    expect(() => topK({ k: 1, indices: "rice" as "fixed" })).toThrow(
      "top-k: indices is rice, and must be fixed or elias-fano.",
    );
    expect(() => topK({ k: 1, values: "int8" as "f16" })).toThrow(
      "top-k: values is int8, and must be f32 or f16 or 2bit or sign.",
    );
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const ways: Omit<TopKParameters, "k">[] = [
      {},
      ...indexCodings.flatMap((indices) => valueCodings.map((values) => ({ indices, values }))),
    ];
    const requests = [1, 2, 100, 257, 5000, 70_000].flatMap((n) =>
      ways.map((way, w) => {
        const seed = Date.now() + n + w;
        // JSON has no −0, and halves do not go so far as any float.
        const x = Array.from(way.values === "f16" ? gradients(n, seed) : anyFloats(n, seed), (value) => value + 0);
        return { codec: "top-k", parameters: { k: Math.ceil(n / (w % 2 ? 3 : 40)), ...way }, x };
      }),
    );
    const wires = requests.map(({ x, parameters }) => {
      const wire = new Uint8Array(topK(parameters).wireBytes(x.length));
      topK(parameters).encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
