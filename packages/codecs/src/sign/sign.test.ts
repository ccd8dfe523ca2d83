import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { anyFloats, askNumpy, codecContract, needsPython, python, toHex, type Vectors } from "../codec-contract.ts";
import { sign } from "../index.ts";
import { sign as definition } from "./sign.ts";

const vectors: Vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

describe("sign", () => {
  codecContract({ codec: sign, definition, vectors });

  it("takes one bit a float", () => {
    expect([0, 1, 8, 9, 64, 1e9].map(sign.wireBytes)).toEqual([0, 1, 1, 2, 8, 125e6]);
  });

  it("counts −0.0 as any other zero", () => {
    const wire = new Uint8Array(1);
    sign.encode(wire, new Float32Array([0, -0, 1, -1]), { zero: "plus" });
    expect(wire[0]).toBe(0b0111);
    sign.encode(wire, new Float32Array([0, -0, 1, -1]), { zero: "minus" });
    expect(wire[0]).toBe(0b0100);
  });

  it.skipIf(!python)(`equals numpy.packbits on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      (["plus", "minus"] as const).map((zero) => ({ kind: "sign", zero, x: [...anyFloats(n, Date.now() + n)] })),
    );
    const wires = requests.map(({ x, zero }) => {
      const wire = new Uint8Array(sign.wireBytes(x.length));
      sign.encode(wire, new Float32Array(x), { zero });
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
