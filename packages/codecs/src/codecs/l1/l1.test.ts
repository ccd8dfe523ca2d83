import { describe, expect, it } from "vitest";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { linf } from "../linf/linf.ts";
import { definition, l1 } from "./l1.ts";

const thirds = (n: number): number[] => [Math.floor(n / 3), 0, n - Math.floor(n / 3)];

/** Decoded on its own, from 0. */
function decoded(codec: ReturnType<typeof l1>, wire: Uint8Array, n: number): number[] {
  const sum = new Float32Array(n);
  codec.decodeAdd(sum, wire);
  return [...sum];
}

function encoded(codec: ReturnType<typeof l1>, x: ArrayLike<number>): Uint8Array {
  const wire = new Uint8Array(codec.wireBytes(x.length));
  codec.encode(wire, new Float32Array(x));
  return wire;
}

/** ± one magnitude, which is the mean of every scale group. */
function equalMagnitudes(n: number, seed: number): Float32Array {
  const magnitude = anyFloats(1, seed)[0]! / 4;
  return gradients(n, seed).map((value) => (value < 0 ? -magnitude : magnitude));
}

const golden = [0, 0.01, -0.02, 0.03, -0.5, 1, -0.04, 0.05];

describe("l1", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "2 bits": { parameters: () => ({ bits: 2 }), floats: gradients },
      "3 bits by blocks": { parameters: () => ({ bits: 3, block: 7 }), floats: gradients },
      "4 bits, numbers of every size": {
        parameters: () => ({ bits: 4 }),
        floats: (n, seed) => anyFloats(n, seed).map((value) => value / 4),
      },
      "5 bits by blocks of whole rounds": { parameters: () => ({ bits: 5, block: 192 }), floats: gradients },
      "7 bits by segments": { parameters: (n) => ({ bits: 7, segments: thirds(n) }), floats: gradients },
      "6 bits in fields of 16": { parameters: () => ({ bits: 6, width: 16, block: 130 }), floats: gradients },
      "7 bits with 42 levels on each side": { parameters: () => ({ bits: 7, side: 42 }), floats: gradients },
      "6 bits with 25 levels on each side, for 5 ranks": {
        parameters: (n) => ({ bits: 6, side: 25, width: 8, unscaled: true, ranks: 5, segments: thirds(n) }),
        floats: gradients,
      },
      "8 bits": { parameters: () => ({ bits: 8 }), floats: gradients },
      "2 bits, every float at the mean": { parameters: () => ({ bits: 2 }), floats: equalMagnitudes },
      "8 bits, every float at the mean": { parameters: () => ({ bits: 8 }), floats: equalMagnitudes },
      "unscaled, with room for 16 ranks": {
        parameters: () => ({ bits: 4, width: 8, unscaled: true, ranks: 16 }),
        floats: gradients,
      },
      "unscaled, in 16 bits, by segments": {
        parameters: (n) => ({ bits: 6, width: 16, unscaled: true, ranks: 1040, segments: thirds(n) }),
        floats: gradients,
      },
    },
  });

  it("gives the levels that the formula of the Lion Cub paper gives in fp64", () => {
    const codec = l1({ bits: 5, unscaled: true }); // s = 15, mean 0.20625
    expect(decoded(codec, encoded(codec, golden), 8)).toEqual([0, 0, -1, 1, -15, 15, -1, 2]);
  });

  it.each([2, 3, 4, 5, 6, 7, 8])(
    "rounds |x| that is its block's mean, s/2 levels, to the even level: %i bits",
    (bits) => {
      const s = 2 ** (bits - 1) - 1;
      const even = 2 * Math.round(s / 4);
      const codec = l1({ bits, unscaled: true });
      for (let seed = 0; seed < 300; seed++) {
        const x = equalMagnitudes(8, seed);
        expect(decoded(codec, encoded(codec, x), 8), `|x| = ${Math.abs(x[0]!)}`).toEqual(
          [...x].map((value) => even * Math.sign(value) + 0),
        );
      }
    },
  );

  it("rounds x halfway between two levels of agreed units to the even one", () => {
    const codec = l1({ bits: 8, unscaled: true });
    const halves = Array.from({ length: 254 }, (_, k) => k - 126.5);
    for (let unit = 1; unit < 2 ** 16; unit += 491) {
      const wire = new Uint8Array(codec.wireBytes(254));
      const sum = new Float32Array(254);
      codec.encode(wire, new Float32Array(halves.map((half) => half * unit)), { units: new Float32Array([unit]) });
      codec.decodeAdd(sum, wire);
      expect([...sum], `a unit of ${unit}`).toEqual(halves.map((half) => 2 * Math.round(half / 2) + 0));
    }
  });

  it("decodes to within half a level of x, and of twice the mean where x is beyond", () => {
    const x = gradients(5000, 1);
    const mean = x.reduce((sum, value) => sum + Math.abs(value), 0) / x.length;
    for (const bits of [2, 4, 8]) {
      const level = (2 * mean) / (2 ** (bits - 1) - 1);
      const codec = l1({ bits });
      for (const [i, value] of decoded(codec, encoded(codec, x), x.length).entries()) {
        const wanted = Math.max(-2 * mean, Math.min(2 * mean, x[i]!));
        expect(Math.abs(value - wanted)).toBeLessThanOrEqual((level / 2) * (1 + 1e-6));
      }
    }
  });

  it.each([true, false])("writes zeros where a segment is all zero, and not NaN (unscaled: %s)", (unscaled) => {
    const codec = l1({ bits: 5, unscaled, segments: [3, 8, 2] });
    const values = decoded(codec, encoded(codec, [0, -0, 0, ...golden, 0, 0]), 13);
    expect([...values.slice(0, 3), ...values.slice(11)].map(Math.abs)).toEqual([0, 0, 0, 0, 0]);
    expect(values[8]).toBeGreaterThan(0.3);
  });

  it("has room in 8 bits for s = ⌊127/P⌋ levels on each side of 0, for every number P of ranks up to 127", () => {
    for (let ranks = 1; ranks <= 127; ranks++) {
      const side = Math.floor(127 / ranks);
      const bits = Math.ceil(Math.log2(2 * side + 1));
      const codec = l1({ bits, side, width: 8, unscaled: true, ranks });
      const sum = new Uint8Array(3);
      for (let rank = 0; rank < ranks; rank++)
        encoded(codec, [1, 0, -1]).forEach((byte, at) => {
          sum[at]! += byte;
        });
      const [plus, zero, minus] = decoded(codec, sum, 3);
      expect(Math.abs(plus! - ranks * side * 0.75)).toBeLessThanOrEqual(ranks / 2); // 1 is 3/4 of twice the mean
      expect([zero, minus]).toEqual([0, -plus!]);
    }
    expect(() => l1({ bits: 8, side: 43, width: 8, unscaled: true, ranks: 3 })).toThrow(
      "3 ranks of 8 bits sum up to 258",
    );
  });

  it("takes as many levels as bits hold if side is not given, and no more", () => {
    const x = gradients(100, 5);
    expect(encoded(l1({ bits: 5, side: 15 }), x)).toEqual(encoded(l1({ bits: 5 }), x));
    expect(() => l1({ bits: 5, side: 16 })).toThrow("l1: side is 16, and must be a whole number, from 1 to 15.");
    expect(() => linf({ bits: 5, side: 3 } as never)).toThrow("not side");
  });

  it("has for P ranks in 8 bits the levels that the authors' code has: s = ⌊127/P⌋, and refuses where that is 0", () => {
    const most = (ranks: number): number => {
      for (let bits = 8; bits > 2; bits--) {
        try {
          l1({ bits, width: 8, unscaled: true, ranks });
          return bits;
        } catch {}
      }
      return 2;
    };
    const s = [2, 4, 8, 16, 32, 64].map((ranks) => 2 ** (most(ranks) - 1) - 1);
    expect(s).toEqual([63, 31, 15, 7, 3, 1]);
    expect(() => l1({ bits: 2, width: 8, unscaled: true, ranks: 64 })).not.toThrow();
    expect(() => l1({ bits: 2, width: 8, unscaled: true, ranks: 128 })).toThrow(
      "l1: 128 ranks of 2 bits sum up to 384, and a field of 8 bits holds 255: take a width of 16, or fewer bits.",
    );
  });

  it.each([
    { bits: 4, width: 8, ranks: 17 },
    { bits: 2, width: 4, ranks: 5 },
    { bits: 7, width: 8, ranks: 2 },
  ])("decodes wires whose bytes were added to the exact sum of the levels: %j", ({ bits, width, ranks }) => {
    const n = 1003;
    const s = 2 ** (bits - 1) - 1;
    const codec = l1({ bits, width, unscaled: true, ranks });
    const sum = new Uint8Array(codec.wireBytes(n));
    const wanted = new Array<number>(n).fill(0);
    for (let rank = 0; rank < ranks; rank++) {
      // Some elements are at the upper end on every rank, where a sum that is too wide would carry.
      const x = gradients(n, 100 + rank).map((value, i) => (i % 3 === 0 ? 10 : value));
      const mean = x.reduce((total, value) => total + Math.abs(value), 0) / n;
      x.forEach((value, i) => {
        wanted[i]! += Math.max(-s, Math.min(s, Math.round((value * s) / (2 * Math.fround(mean)))));
      });
      encoded(codec, x).forEach((byte, at) => {
        sum[at]! += byte;
      });
    }
    expect(decoded(codec, sum, n)).toEqual(wanted.map((value) => value + 0));
    expect(Math.max(...wanted)).toBe(ranks * s);
  });

  it("refuses parameters in one sentence each", () => {
    expect(() => l1({ bits: 1 })).toThrow("l1: bits is 1, and must be a whole number, from 2 to 8.");
    expect(() => l1({} as never)).toThrow("l1: bits is undefined");
    expect(() => l1({ bits: 4, k: 1 } as never)).toThrow(", not k.");
    expect(() => l1({ bits: 4, ranks: 2 })).toThrow("ranks is 2, and only unscaled wires can be summed");
    expect(() => l1({ bits: 4, width: 6 })).toThrow(
      "width is 6, and fields of 4 bits per float are 4, 8 or 16 bits wide.",
    );
    expect(() => l1({ bits: 4, block: 8, segments: [8] })).toThrow("both block and segments");
    expect(() => l1({ bits: 4, segments: [8, 3] }).wireBytes(12)).toThrow(/11 floats.*12/);
  });

  it("refuses numbers whose doubled mean is beyond fp32, naming the largest", () => {
    const codec = l1({ bits: 4 });
    expect(() => encoded(codec, [1e38, -3e38, 2.5e38])).toThrow(
      /x\[1\] is -3\.0\d+e\+38, which this codec cannot write/,
    );
    expect(() => encoded(codec, [1e38, -3e38, 1e38])).not.toThrow();
  });

  it("takes 4 bytes per scale group and `width` bits per float", () => {
    expect(l1({ bits: 3 }).wireBytes(17)).toBe(4 + 7);
    expect(l1({ bits: 3, block: 4 }).wireBytes(17)).toBe(20 + 7);
    expect(l1({ bits: 3, width: 8, unscaled: true }).wireBytes(17)).toBe(17);
    expect(l1({ bits: 3, unscaled: true, ranks: 36 }).wireBytes(17)).toBe(17);
    expect(l1({ bits: 3 }).wireBytes(0)).toBe(0);
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      [{ bits: 2 }, { bits: 5, block: 50 }, { bits: 8, width: 16, unscaled: true, segments: thirds(n) }].map(
        (parameters) => ({
          codec: "l1",
          parameters,
          x: [...gradients(n, Date.now() + n)],
        }),
      ),
    );
    expect(requests.map(({ x, parameters }) => toHex(encoded(l1(parameters), x)))).toEqual(askNumpy(requests));
  });
});
