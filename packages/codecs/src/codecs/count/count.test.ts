import { describe, expect, it } from "vitest";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients, random } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { type CountParameters, count, definition } from "./count.ts";

/** Whole numbers from −s to s. */
const wholes =
  (s: number) =>
  (n: number, seed: number): Float32Array => {
    const next = random(seed);
    return Float32Array.from({ length: n }, () => Math.floor(next() * (2 * s + 1)) - s);
  };

function encoded(parameters: CountParameters, x: ArrayLike<number>, zero: "plus" | "minus" = "plus"): Uint8Array {
  const codec = count(parameters);
  const wire = new Uint8Array(codec.wireBytes(x.length));
  codec.encode(wire, new Float32Array(x), { zero });
  return wire;
}

function decoded(parameters: CountParameters, wire: Uint8Array, n: number): number[] {
  const sum = new Float32Array(n);
  count(parameters).decodeAdd(sum, wire);
  return [...sum];
}

describe("count", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "signs of 3 ranks": { parameters: () => ({ width: 2, ranks: 3 }) },
      "signs of 15 ranks": { parameters: () => ({ width: 4, ranks: 15 }) },
      "signs of 255 ranks": { parameters: () => ({ bits: 1, width: 8, ranks: 255 }) },
      "signs of 256 ranks": { parameters: () => ({ width: 16, ranks: 256 }) },
      "levels of 2 bits": { parameters: () => ({ bits: 2, width: 4, ranks: 5 }), floats: wholes(1) },
      "levels of 5 bits": { parameters: () => ({ bits: 5, width: 8, ranks: 8 }), floats: wholes(15) },
      "levels of 8 bits": { parameters: () => ({ bits: 8, width: 16, ranks: 257 }), floats: wholes(127) },
    },
  });

  it.each([
    { ranks: 1, width: 2 },
    { ranks: 3, width: 2 },
    { ranks: 4, width: 4 },
    { ranks: 15, width: 4 },
    { ranks: 16, width: 8 },
    { ranks: 255, width: 8 },
  ])("counts $ranks ranks in $width bits: added bytes decode to plus votes less minus votes", ({ ranks, width }) => {
    const n = 203;
    const parameters = { ranks };
    expect(count(parameters).parameters.width).toBe(width);
    const sum = new Uint8Array(count(parameters).wireBytes(n));
    const wanted = new Array<number>(n).fill(0);
    for (let rank = 0; rank < ranks; rank++) {
      // Every third element is plus on all ranks: the fullest field there can be.
      const x = gradients(n, rank).map((value, i) => (i % 3 === 0 ? 1 : value));
      x.forEach((value, i) => {
        wanted[i]! += value >= 0 ? 1 : -1;
      });
      encoded(parameters, x).forEach((byte, at) => {
        sum[at]! += byte;
      });
    }
    expect(decoded(parameters, sum, n)).toEqual(wanted);
    expect(Math.max(...wanted)).toBe(ranks);
  });

  it.each([
    { bits: 2, width: 4, ranks: 5 },
    { bits: 5, width: 8, ranks: 8 },
    { bits: 8, width: 8, ranks: 1 },
  ])("adds whole numbers exactly: %j", (parameters) => {
    const n = 100;
    const s = 2 ** (parameters.bits - 1) - 1;
    const sum = new Uint8Array(count(parameters).wireBytes(n));
    const wanted = new Array<number>(n).fill(0);
    for (let rank = 0; rank < parameters.ranks; rank++) {
      const x = wholes(s)(n, rank).map((value, i) => (i < 5 ? s : i < 10 ? -s : value));
      x.forEach((value, i) => {
        wanted[i]! += value;
      });
      encoded(parameters, x).forEach((byte, at) => {
        sum[at]! += byte;
      });
    }
    expect(decoded(parameters, sum, n)).toEqual(wanted);
  });

  it("lets fields of 16 bits be added as 16-bit words", () => {
    const parameters = { bits: 8, ranks: 200 };
    const x = wholes(127)(50, 1);
    const words = new Uint16Array(new Uint8Array(encoded(parameters, x)).buffer).map((word) => word * 200);
    expect(decoded(parameters, new Uint8Array(words.buffer), 50)).toEqual([...x].map((value) => value * 200 + 0));
  });

  it("refuses more ranks than a field holds: 15 of one bit fit a nibble, 16 do not", () => {
    expect(count({ width: 4, ranks: 15 }).wireBytes(10)).toBe(5);
    expect(() => count({ width: 4, ranks: 16 })).toThrow(
      "count: 16 ranks of 1 bit sum up to 16, and a field of 4 bits holds 15: take a width of 8, or fewer bits.",
    );
    expect(() => count({ ranks: 65536 })).toThrow("take fewer bits or fewer ranks");
  });

  it("refuses what is not whole, or beyond the levels, with the index, and NaN as NaN", () => {
    const parameters = { bits: 3, ranks: 2 };
    expect(() => encoded(parameters, [3, -3, 0.5])).toThrow("x[2] is 0.5, which this codec cannot write");
    expect(() => encoded(parameters, [3, 4, 0.5])).toThrow("x[1] is 4, which this codec cannot write");
    expect(() => encoded(parameters, [3, 2, Number.NaN])).toThrow("x[2] is NaN");
    const long = new Array(300).fill(-3);
    long[200] = -3.5;
    expect(() => encoded(parameters, long)).toThrow("x[200] is -3.5");
  });

  it("refuses parameters in one sentence each", () => {
    expect(() => count({} as never)).toThrow("count: ranks is undefined");
    expect(() => count({ bits: 9, ranks: 1 })).toThrow("count: bits is 9, and must be a whole number, from 1 to 8.");
    expect(() => count({ width: 3, ranks: 1 })).toThrow("width is 3, and fields of 1 bit per float are 2, 4, 8 or 16");
    expect(() => count({ ranks: 2, block: 8 } as never)).toThrow(", not block.");
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) => [
      ...(["plus", "minus"] as const).map((zero) => ({
        codec: "count",
        parameters: { width: 4, ranks: 9 },
        call: { zero },
        x: [...anyFloats(n, Date.now() + n)],
      })),
      {
        codec: "count",
        parameters: { bits: 6, width: 8, ranks: 4 },
        call: { zero: "plus" as const },
        x: [...wholes(31)(n, Date.now() + n)],
      },
    ]);
    const wires = requests.map(({ x, parameters, call }) => toHex(encoded(parameters, x, call.zero)));
    expect(wires).toEqual(askNumpy(requests));
  });
});
