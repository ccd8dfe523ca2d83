import { describe, expect, it } from "vitest";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyBytes, anyFloats } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { definition, sign } from "./sign.ts";

describe("sign", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "zeros plus": { call: () => ({ zero: "plus" }) },
      "zeros minus, some elements held": { call: (n) => ({ zero: "minus", hold: anyBytes(Math.ceil(n / 8), n + 3) }) },
    },
  });

  it("takes one bit per float, and leaves pad bits 0", () => {
    expect([0, 1, 8, 9, 64, 1e9].map(sign.wireBytes)).toEqual([0, 1, 1, 2, 8, 125e6]);
    const wire = new Uint8Array(2).fill(0xff);
    sign.encode(wire, new Float32Array(11).fill(1), { zero: "plus" });
    expect([...wire]).toEqual([0xff, 0b111]);
  });

  it.each(sign.kernels())("gives back the signs of 1 to 257 floats, by $implementation", (kernel) => {
    for (let n = 1; n <= 257; n++)
      for (const zero of ["plus", "minus"] as const) {
        const x = anyFloats(n, n); // with zeros of both signs
        const wire = new Uint8Array(sign.wireBytes(n)).fill(0xff);
        expect(kernel.encode(wire, x, {}, { zero })).toBe(n);
        const signs = new Float32Array(n);
        expect(kernel.decodeAdd(signs, wire, {}, { scale: 1 })).toBe(true);
        expect([...signs], `n = ${n}`).toEqual([...x].map((value) => Math.sign(value) || (zero === "plus" ? 1 : -1)));
        expect(wire[wire.length - 1]! >> (n % 8 || 8), `n = ${n}, pad bits`).toBe(0);
      }
  });

  it("begins with the lowest bit of a byte, where numpy.packbits and DeepSpeed begin with the highest", () => {
    const wire = new Uint8Array(2);
    sign.encode(wire, new Float32Array([0.5, -1, 0, 2, -3, 4, -5, 6, -0]), { zero: "plus" });
    const turned = (byte: number) => Number.parseInt([...byte.toString(2).padStart(8, "0")].reverse().join(""), 2);
    expect([...wire].map(turned)).toEqual([181, 128]); // packbits of x ≥ 0
  });

  it("counts −0.0 as any other zero", () => {
    const wire = new Uint8Array(1);
    sign.encode(wire, new Float32Array([0, -0, 1, -1]), { zero: "plus" });
    expect(wire[0]).toBe(0b0111);
    sign.encode(wire, new Float32Array([0, -0, 1, -1]), { zero: "minus" });
    expect(wire[0]).toBe(0b0100);
  });

  it("reads its options once, before it looks at any memory", () => {
    const x = new Float32Array(8).fill(-1);
    const wire = new Uint8Array(1);
    let asked = 0;
    const call = {
      get zero() {
        if (asked++ === 1) structuredClone(x, { transfer: [x.buffer] });
        return "plus" as const;
      },
    };
    sign.encode(wire, x, call);
    sign.encodeWithFeedback(wire, new Float32Array(8), new Float32Array(8), { zero: "plus" });
    expect([asked, wire[0]]).toEqual([1, 0xff]);
    expect(() => sign.encodeWithFeedback(wire, x, x.slice(), call)).toThrow("x has lost its memory");
  });

  it.skipIf(!python)(`equals numpy.packbits on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      (["plus", "minus"] as const).map((zero) => ({
        codec: "sign",
        call: { zero },
        x: [...anyFloats(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, call }) => {
      const wire = new Uint8Array(sign.wireBytes(x.length));
      sign.encode(wire, new Float32Array(x), call);
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
