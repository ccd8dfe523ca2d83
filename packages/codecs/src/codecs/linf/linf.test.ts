import { codecs } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { implementations } from "../../implementation.ts";
import { philox } from "../../shared/random/random.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { asksForTheSameDraws, isUnbiased } from "../../testing/stochastic-contract.ts";
import { definition, type LinfParameters, linf } from "./linf.ts";

const thirds = (n: number): number[] => [Math.floor(n / 3), 0, n - Math.floor(n / 3)];

function encoded(parameters: LinfParameters, x: ArrayLike<number>, step = 0): Uint8Array {
  const codec = linf(parameters);
  const wire = new Uint8Array(codec.wireBytes(x.length));
  codec.encode(wire, new Float32Array(x), { seed: 5, step });
  return wire;
}

function decoded(parameters: LinfParameters, wire: Uint8Array, n: number): number[] {
  const sum = new Float32Array(n);
  linf(parameters).decodeAdd(sum, wire);
  return [...sum];
}

const golden = [0, 0.01, -0.02, 0.03, -0.5, 1, -0.04, 0.05];

describe("linf", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "2 bits": { parameters: () => ({ bits: 2 }), floats: gradients },
      "4 bits, numbers of every size": { parameters: () => ({ bits: 4 }) },
      "8 bits by blocks": { parameters: () => ({ bits: 8, block: 192 }), floats: gradients },
      "5 bits by segments": { parameters: (n) => ({ bits: 5, segments: thirds(n) }), floats: gradients },
      "without zero": { parameters: () => ({ bits: 3, levels: "without-zero" }), floats: gradients },
      logarithmic: { parameters: () => ({ bits: 4, levels: "logarithmic" }), floats: gradients },
      "logarithmic, numbers of every size, by blocks": {
        parameters: () => ({ bits: 8, levels: "logarithmic", block: 100 }),
      },
      "unscaled, with room for 16 ranks": {
        parameters: () => ({ bits: 4, width: 8, unscaled: true, ranks: 16 }),
        floats: gradients,
      },
    },
  });

  it("rounds x s / max to one of its two neighbours, and the golden values to those between them", () => {
    const nearest = [0, 0, 0, 0, -8, 15, -1, 1];
    for (let step = 0; step < 50; step++) {
      const parameters = { bits: 5, unscaled: true };
      for (const [i, q] of decoded(parameters, encoded(parameters, golden, step), 8).entries()) {
        const exact = Math.fround(golden[i]!) * 15;
        expect([Math.floor(exact), Math.ceil(exact)].map((value) => value + 0)).toContain(q);
        expect(Math.abs(q - nearest[i]!)).toBeLessThanOrEqual(1);
      }
    }
  });

  it.each(["uniform", "logarithmic"] as const)("is unbiased, within 4σ of 100 000 draws: %s levels", (levels) => {
    for (const bits of [2, 4]) {
      const s = 2 ** (bits - 1) - 1;
      const stands = levels === "uniform" ? (k: number) => k / s : (k: number) => (k === 0 ? 0 : 2 ** (k - s));
      isUnbiased(
        linf({ bits, levels }),
        Array.from({ length: s + 1 }, (_, k) => stands(k)),
        () => 1,
      );
    }
  });

  it("gives no zero for what is not zero, where that is asked", () => {
    const x = gradients(2000, 3);
    const parameters = { bits: 3, levels: "without-zero" } as const;
    const values = decoded(parameters, encoded(parameters, x), 2000);
    expect(values.map(Math.sign)).toEqual([...x].map((value) => Math.sign(value) + 0));
    expect(decoded({ bits: 3 }, encoded({ bits: 3 }, x), 2000).filter((value) => value === 0).length).toBeGreaterThan(
      500,
    );
  });

  it("writes powers of two times the largest where levels are logarithmic", () => {
    const parameters = { bits: 3, levels: "logarithmic" } as const; // ±8, ±4, ±2 and 0
    expect(decoded(parameters, encoded(parameters, [8, -8, 4, -2, 2, 0, -4]), 7)).toEqual([8, -8, 4, -2, 2, 0, -4]);
    const drawn = new Set(
      Array.from({ length: 60 }, (_, step) => decoded(parameters, encoded(parameters, [8, 1, 3, -5], step), 4)).flat(),
    );
    expect([...drawn].sort((a, b) => a - b)).toEqual([-8, -4, 0, 2, 4, 8]);
  });

  it("gives an x that lies on a level this level, whichever way s / scale is rounded", () => {
    const levels = Array.from({ length: 255 }, (_, k) => k - 127);
    for (let step = 1; step < 2 ** 17; step += 991) {
      const x = levels.map((k) => k * step); // the scale is 127 steps, in 24 bits
      expect(decoded({ bits: 8, unscaled: true }, encoded({ bits: 8, unscaled: true }, x, step), 255)).toEqual(levels);
    }
  });

  it("draws r < p, and not r ≤ p, in every implementation", () => {
    // Numbers that are exactly the r of their element, where 24 bits hold it; under 2 bits and a scale of 1 they are
    // their own p.
    const [seed, step] = [9, 4];
    const x = Float32Array.from({ length: 4096 }, (_, i) => {
      const words = philox([16 * Math.floor(i / 64) + (i % 16), 0, step, 0], [seed, 0]);
      const r = (words[Math.floor((i % 64) / 16)]! >>> 1) / 2 ** 31;
      return Math.fround(r) === r ? r : 0;
    });
    x[0] = 1;
    expect(x.filter((value) => value > 0).length).toBeGreaterThan(100);
    for (const kernel of implementations(definition, codecs).kernels) {
      const wire = new Uint8Array(kernel.wireBytes(x.length, { bits: 2 }));
      const sum = new Float32Array(x.length);
      kernel.encode(wire, x, { bits: 2 }, { seed, step });
      kernel.decodeAdd(sum, wire, { bits: 2 }, { scale: 1 });
      expect(
        sum.findLastIndex((value) => value !== 0),
        kernel.implementation,
      ).toBe(0);
    }
  });

  it("draws the same for the same seed, step and place, in one piece or in two", () => {
    for (const levels of ["uniform", "without-zero", "logarithmic"] as const)
      asksForTheSameDraws(linf({ bits: 3, levels, block: 64 }));
  });

  it("decodes wires whose bytes were added to the exact sum of the levels", () => {
    const [n, ranks] = [500, 17];
    const parameters = { bits: 4, unscaled: true, ranks };
    const sum = new Uint8Array(linf(parameters).wireBytes(n));
    const wanted = new Array<number>(n).fill(0);
    for (let rank = 0; rank < ranks; rank++) {
      const wire = encoded(
        parameters,
        gradients(n, rank).map((value, i) => (i % 3 ? value : 10)),
        rank,
      );
      // 8 bits per field: the levels can be read off the wire.
      for (const [i, byte] of wire.entries()) wanted[i]! += byte - 7;
      wire.forEach((byte, at) => {
        sum[at]! += byte;
      });
    }
    expect(decoded(parameters, sum, n)).toEqual(wanted);
    expect(wanted[0]).toBe(ranks * 7);
  });

  it("writes the largest exactly, one element, zeros and the ends of the range among them", () => {
    const largest = 3.4028234663852886e38;
    for (const levels of ["uniform", "without-zero", "logarithmic"] as const) {
      const parameters = { bits: 6, levels };
      expect(decoded(parameters, encoded(parameters, [-0.3]), 1)).toEqual([Math.fround(-0.3)]);
      expect(decoded(parameters, encoded(parameters, [largest, 0, -largest]), 3)).toEqual([largest, 0, -largest]);
      expect(decoded(parameters, encoded(parameters, [0, -0]), 2).map(Math.abs)).toEqual([0, 0]);
    }
  });

  it("refuses parameters in one sentence each", () => {
    expect(() => linf({ bits: 9 })).toThrow("linf: bits is 9, and must be a whole number, from 2 to 8.");
    expect(() => linf({ bits: 4, levels: "even" as "uniform" })).toThrow(
      "linf: levels is even, and must be uniform or",
    );
    expect(() => linf({ bits: 4, levels: "logarithmic", unscaled: true })).toThrow("leave unscaled out");
    expect(() => linf({ bits: 4, ranks: 2 })).toThrow("only unscaled wires can be summed");
    expect(() => linf({ bits: 4, width: 8, unscaled: true, ranks: 18 })).toThrow("take a width of 16, or fewer bits");
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const ways: LinfParameters[] = [
      { bits: 2 },
      { bits: 5, block: 50, levels: "logarithmic" },
      { bits: 8, levels: "without-zero" },
    ];
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      ways.map((parameters) => ({
        codec: "linf",
        parameters,
        call: { seed: 5, step: Date.now() },
        x: [...(n === 257 ? anyFloats : gradients)(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, parameters, call }) => toHex(encoded(parameters, x, call.step)));
    expect(wires).toEqual(askNumpy(requests));
  });
});
