import { describe, expect, it } from "vitest";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { asksForTheSameDraws, isUnbiased } from "../../testing/stochastic-contract.ts";
import { definition, type QsgdParameters, qsgd } from "./qsgd.ts";

const thirds = (n: number): number[] => [Math.floor(n / 3), 0, n - Math.floor(n / 3)];

function encoded(parameters: QsgdParameters, x: ArrayLike<number>, step = 0): Uint8Array {
  const codec = qsgd(parameters);
  const wire = new Uint8Array(codec.wireBytes(x.length));
  codec.encode(wire, new Float32Array(x), { seed: 5, step });
  return wire;
}

function decoded(parameters: QsgdParameters, wire: Uint8Array, n: number): number[] {
  const sum = new Float32Array(n);
  qsgd(parameters).decodeAdd(sum, wire);
  return [...sum];
}

const norm = (x: Float32Array): number => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));

describe("qsgd", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "2 bits": { parameters: () => ({ bits: 2 }), floats: gradients },
      "4 bits by blocks": { parameters: () => ({ bits: 4, block: 128 }), floats: gradients },
      "6 bits, numbers of every size": {
        parameters: () => ({ bits: 6 }),
        floats: (n, seed) => anyFloats(n, seed).map((value) => value / 128),
      },
      "7 bits by odd blocks": { parameters: () => ({ bits: 7, block: 50 }), floats: gradients },
      "8 bits by segments": { parameters: (n) => ({ bits: 8, segments: thirds(n) }), floats: gradients },
    },
  });

  it("is unbiased, within 4σ of 100 000 draws", () => {
    for (const bits of [2, 4, 8]) {
      const s = 2 ** (bits - 1) - 1;
      const parts = Array.from({ length: s + 1 }, (_, k) => k / s);
      isUnbiased(qsgd({ bits, block: 8 }), parts, (x) => norm(x.subarray(0, 8)));
    }
  });

  it("keeps the variance within the bound of the paper's Lemma 3.1, min(n / s², √n / s) ‖x‖²", () => {
    const n = 512;
    const x = gradients(n, 9);
    for (const bits of [2, 4, 6]) {
      const s = 2 ** (bits - 1) - 1;
      let squares = 0;
      const rounds = 200;
      for (let step = 0; step < rounds; step++) {
        const values = decoded({ bits }, encoded({ bits }, x, step), n);
        squares += values.reduce((sum, value, i) => sum + (value - x[i]!) ** 2, 0);
      }
      expect(squares / rounds).toBeLessThanOrEqual(Math.min(n / s ** 2, Math.sqrt(n) / s) * norm(x) ** 2);
    }
  });

  it("writes zeros for a norm of 0, and one element as it is", () => {
    expect(decoded({ bits: 4 }, encoded({ bits: 4 }, [0, -0, 0]), 3).map(Math.abs)).toEqual([0, 0, 0]);
    for (const value of [-0.3, 1, 1e-45, 3e38])
      expect(decoded({ bits: 4 }, encoded({ bits: 4 }, [value]), 1)).toEqual([Math.fround(value)]);
  });

  it("draws the same for the same seed, step and place, in one piece or in two", () => {
    asksForTheSameDraws(qsgd({ bits: 3, block: 64 }));
  });

  it("refuses numbers whose norm is beyond fp32, naming the largest", () => {
    expect(() => encoded({ bits: 4 }, [2.5e38, 1, -2.9e38])).toThrow(
      /x\[2\] is -2\.9\d*e\+38, which this codec cannot write/,
    );
    expect(() => encoded({ bits: 4, block: 1 }, [2.5e38, 1, -2.9e38])).not.toThrow();
    expect(() => encoded({ bits: 4 }, [2.5e38, 3e38, Number.NaN])).toThrow("x[2] is NaN");
  });

  it("refuses parameters in one sentence each", () => {
    expect(() => qsgd({ bits: 1 })).toThrow("qsgd: bits is 1, and must be a whole number, from 2 to 8.");
    expect(() => qsgd({ bits: 4, width: 8 } as never)).toThrow("qsgd takes bits, block, segments, not width.");
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      [{ bits: 2 }, { bits: 5, block: 50 }, { bits: 8, segments: thirds(n) }].map((parameters) => ({
        codec: "qsgd",
        parameters,
        call: { seed: 5, step: Date.now() },
        x: [...gradients(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, parameters, call }) => toHex(encoded(parameters, x, call.step)));
    expect(wires).toEqual(askNumpy(requests));
  });
});
