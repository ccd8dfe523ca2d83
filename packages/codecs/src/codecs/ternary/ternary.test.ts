import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyFloats } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { majorityOrZero } from "../../vote/majority.ts";
import { sign } from "../sign/sign.ts";
import { definition, ternary } from "./ternary.ts";

describe("ternary", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "any floats": {},
      "mostly zeros": { floats: (n, seed) => anyFloats(n, seed).map((x, i) => (i % 5 === 0 ? x : i % 2 ? 0 : -0)) },
    },
  });

  it("takes two bits per float, and leaves pad bits 0", () => {
    expect([0, 1, 8, 9, 64, 1e9].map(ternary.wireBytes)).toEqual([0, 2, 2, 4, 16, 250e6]);
    const wire = new Uint8Array(4).fill(0xff);
    ternary.encode(wire, new Float32Array(11).fill(1));
    expect([...wire]).toEqual([0xff, 0b111, 0xff, 0b111]);
  });

  it("reads the planes of an election: plus, minus, and nothing where it was tied", () => {
    const votes = [
      [1, -1, 1, -1, 1],
      [1, -1, -1, 1, -1],
    ].map((x) => {
      const wire = new Uint8Array(1);
      sign.encode(wire, new Float32Array(x), { zero: "plus" });
      return wire;
    });
    const wire = new Uint8Array(ternary.wireBytes(5));
    majorityOrZero(wire.subarray(0, 1), wire.subarray(1), votes, 5);
    const sum = new Float32Array(5);
    ternary.decodeAdd(sum, wire, { scale: 0.5 });
    expect([...sum]).toEqual([0.5, -0.5, 0, 0, 0]);
  });

  it("reads an element that is plus and yet zero as 0", () => {
    const sum = new Float32Array([1, 1, 1, 1]);
    ternary.decodeAdd(sum, new Uint8Array([0b0011, 0b0101]));
    expect([...sum]).toEqual([2, 1, 0, 1]);
  });

  it("takes no parameters", () => {
    expect(() => codecNamed("ternary", { bits: 2 })).toThrow("ternary takes no parameters, not bits.");
  });

  it.skipIf(!python)(`equals numpy.packbits on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].map((n) => ({ codec: "ternary", x: [...anyFloats(n, Date.now() + n)] }));
    const wires = requests.map(({ x }) => {
      const wire = new Uint8Array(ternary.wireBytes(x.length));
      ternary.encode(wire, new Float32Array(x));
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});
