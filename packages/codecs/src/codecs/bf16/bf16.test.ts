import { describe, expect, it } from "vitest";
import { codecNamed } from "../../codecs.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { agreesWithTorch, decodesLikeTorch, needsTorch, torch } from "../../testing/half-floats-beside-torch.ts";
import { anyFloats } from "../../testing/inputs.ts";
import { bf16, definition } from "./bf16.ts";

const largest = 255 * 2 ** 120;

describe("bf16", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "any number that it has": {
        floats: (n, seed) => anyFloats(n, seed).map((x) => Math.max(-largest, Math.min(x, largest))),
      },
    },
  });

  it("refuses the number that would become infinite, by index and value, and takes its neighbour", () => {
    const wire = new Uint8Array(4);
    const above = 511 * 2 ** 119; // halfway from the largest to 2¹²⁸
    const below = above - 2 ** 104;
    bf16.encode(wire, new Float32Array([below, -below]));
    expect([...wire]).toEqual([0x7f, 0x7f, 0x7f, 0xff]);
    expect(() => bf16.encode(wire, new Float32Array([below, above]))).toThrow(
      `bf16.encode: x[1] is ${above}, which this codec cannot write;`,
    );
  });

  it("keeps denormals", () => {
    const sum = new Float32Array(2);
    const wire = new Uint8Array(4);
    bf16.encode(wire, new Float32Array([2 ** -133, -(2 ** -127)]));
    bf16.decodeAdd(sum, wire);
    expect([...sum]).toEqual([2 ** -133, -(2 ** -127)]);
  });

  it("takes no parameters", () => {
    expect(() => codecNamed("bf16", { bits: 4 })).toThrow("bf16 takes no parameters, not bits.");
  });

  it.skipIf(!torch)(`reads all halves as torch.bfloat16 does${needsTorch}`, () => decodesLikeTorch(bf16, "bfloat16"));
  it.skipIf(!torch)(`rounds ten million floats as torch.bfloat16 does${needsTorch}`, () =>
    agreesWithTorch(bf16, "bfloat16"),
  );
});
