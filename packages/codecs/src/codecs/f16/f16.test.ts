import { describe, expect, it } from "vitest";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { agreesWithTorch, decodesLikeTorch, needsTorch, torch } from "../../testing/half-floats-beside-torch.ts";
import { random } from "../../testing/inputs.ts";
import { definition, f16 } from "./f16.ts";

/** Every exponent that f16 has, its denormals, what rounds to 0 and what rounds to its largest. */
function floats(n: number, seed: number): Float32Array {
  const next = random(seed);
  const special = [0, -0, 65504, -65519.99609375, 2 ** -24, -(2 ** -25), 2 ** -149];
  return Float32Array.from({ length: n }, () =>
    next() < 0.3 ? special[Math.floor(next() * special.length)]! : (next() * 2 - 1) * 2 ** Math.floor(next() * 43 - 27),
  );
}

describe("f16", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: { "any number that it has": { floats } },
  });

  it("takes 65504 and refuses 65520, by index and value", () => {
    const wire = new Uint8Array(4);
    f16.encode(wire, new Float32Array([65504, -65519.99609375]));
    expect([...wire]).toEqual([0xff, 0x7b, 0xff, 0xfb]);
    expect(() => f16.encode(wire, new Float32Array([65504, 65520]))).toThrow(
      "f16.encode: x[1] is 65520, which this codec cannot write;",
    );
    expect(() => f16.encode(wire, new Float32Array([-1e30, Number.NaN]))).toThrow(
      `f16.encode: x[0] is ${Math.fround(-1e30)}, which this codec cannot write;`,
    );
  });

  it("refuses a sum of error feedback that does not fit, and leaves the error as it was", () => {
    const wire = new Uint8Array(4);
    const error = new Float32Array([0, 65000]);
    expect(() => f16.encodeWithFeedback(wire, new Float32Array([1, 1000]), error)).toThrow(
      "f16.encodeWithFeedback: x[1] + error[1] is 66000, which this codec cannot write;",
    );
    expect([...error]).toEqual([0, 65000]);
    const infinite = new Float32Array([1, Infinity]);
    expect(() => f16.encodeWithFeedback(wire, infinite, error)).toThrow("f16.encodeWithFeedback: x[1] is Infinity: ");
    error[1] = 3e38;
    const large = new Float32Array([1, 3e38]);
    expect(() => f16.encodeWithFeedback(wire, large, error)).toThrow("x[1] + error[1] is Infinity: ");
  });

  it("keeps denormals, both ways", () => {
    const x = new Float32Array([2 ** -24, -(2 ** -24), 1023 * 2 ** -24, 2 ** -14, 2 ** -25, 3 * 2 ** -25]);
    const wire = new Uint8Array(f16.wireBytes(x.length));
    f16.encode(wire, x);
    expect([...new Uint16Array(wire.buffer)]).toEqual([1, 0x8001, 0x3ff, 0x400, 0, 2]);
    const sum = new Float32Array(x.length);
    f16.decodeAdd(sum, wire);
    expect([...sum]).toEqual([2 ** -24, -(2 ** -24), 1023 * 2 ** -24, 2 ** -14, 0, 2 ** -23]);
  });

  it.skipIf(!torch)(`reads all halves as torch.float16 does${needsTorch}`, () => decodesLikeTorch(f16, "float16"));
  it.skipIf(!torch)(`rounds ten million floats as torch.float16 does${needsTorch}`, () =>
    agreesWithTorch(f16, "float16"),
  );
});
