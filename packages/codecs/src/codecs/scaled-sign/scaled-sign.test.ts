import { describe, expect, it } from "vitest";
import { BadWireError } from "../../codec.ts";
import { codecNamed } from "../../codecs.ts";
import { codecContract, vectorsBeside } from "../../testing/codec-contract.ts";
import { toHex } from "../../testing/hex.ts";
import { anyBytes, anyFloats, gradients } from "../../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../../testing/python.ts";
import { definition, scaledSign } from "./scaled-sign.ts";

/** Segments of every kind: an empty one, odd ends, a last one of one element. */
const segments = (n: number): number[] => [
  0,
  Math.floor(n / 3),
  n - Math.floor(n / 3) - Math.min(n, 1),
  Math.min(n, 1),
];

const masked = (n: number) => ({ zero: "minus", hold: anyBytes(Math.ceil(n / 8), n + 3) }) as const;

describe("scaled-sign", () => {
  codecContract({
    definition,
    vectors: vectorsBeside(import.meta.url),
    configurations: {
      "one scale": { call: () => ({ zero: "plus" }) },
      "one scale, some elements held": { call: masked, floats: gradients },
      "blocks of 24": { parameters: () => ({ block: 24 }) },
      "blocks of 5, some elements held": { parameters: () => ({ block: 5 }), call: masked },
      "blocks of 100, most of them zero": {
        parameters: () => ({ block: 100 }),
        floats: (n, seed) => anyFloats(n, seed).map((x, i) => (i % 300 < 100 ? x : i % 2 ? 0 : -0)),
      },
      segments: { parameters: (n) => ({ segments: segments(n) }) },
    },
  });

  it("takes a bit per float and four bytes per scale group", () => {
    expect([0, 1, 8, 9].map(scaledSign().wireBytes)).toEqual([0, 5, 5, 6]);
    expect(scaledSign({ block: 100 }).wireBytes(1001)).toBe(4 * 11 + 126);
    expect(scaledSign({ segments: [3, 0, 6] }).wireBytes(9)).toBe(4 * 3 + 2);
  });

  it("says which parameter is wrong, and how", () => {
    expect(() => scaledSign({ block: 0 })).toThrow("scaled-sign: block is 0, and must be a whole number, 1 or more.");
    expect(() => scaledSign({ block: 4, segments: [4] })).toThrow("both block and segments are given");
    expect(() => scaledSign({ segments: [4, -1] })).toThrow("segments[1] is -1");
    expect(() => codecNamed("scaled-sign", { bits: 1 })).toThrow("scaled-sign takes block, segments, not bits.");
    const x = new Float32Array(12);
    const codec = scaledSign({ segments: [4, 6] });
    const sentence = "segments: they add up to 10 floats, and there are 12; give lengths that add up to that.";
    expect(() => codec.wireBytes(12)).toThrow(sentence);
    expect(() => codec.encode(new Uint8Array(10), x, { zero: "plus" })).toThrow(sentence);
    expect(() => codec.decodeAdd(x, new Uint8Array(10))).toThrow(sentence);
  });

  it("keeps held elements out of the scale, so padding does not shrink it", () => {
    const wire = new Uint8Array(4 + 2);
    const padded = new Float32Array(16);
    padded.set([3, -3, 3, -3, 3, -3, 3, -3, 3, -3]);
    scaledSign().encode(wire, padded, { zero: "plus", hold: new Uint8Array([0, 0b11111100]) });
    expect(scaleOf(wire)).toBe(3);
    expect([...wire.subarray(4)]).toEqual([0b01010101, 0b01]);
    scaledSign().encode(wire, padded, { zero: "plus" });
    expect(scaleOf(wire)).toBe(Math.fround(3 * Math.sqrt(10 / 16)));
    // What a held element holds does not matter either.
    padded.fill(1e30, 10);
    scaledSign().encode(wire, padded, { zero: "plus", hold: new Uint8Array([0, 0b11111100]) });
    expect(scaleOf(wire)).toBe(3);
  });

  it("sends nothing for scale groups of zeros, and adds nothing for them", () => {
    const codec = scaledSign({ block: 8 });
    const wire = new Uint8Array(codec.wireBytes(24)).fill(0xff);
    codec.encode(wire, new Float32Array(24).fill(2, 8, 16), { zero: "plus" });
    expect([...wire]).toEqual([0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0xff, 0]);
    const sum = new Float32Array(24).fill(1);
    codec.decodeAdd(sum, wire);
    expect([...sum]).toEqual([...new Float32Array(24).fill(1).fill(3, 8, 16)]);
  });

  it.each([1, 2, 5])(
    "loses nothing of averaged momenta: outputs and errors add up to the inputs, of %i ranks",
    (ranks) => {
      const n = 100;
      const hold = new Uint8Array(Math.ceil(n / 8));
      hold[3] = 0b1000_0010;
      const isHeld = (i: number) => (hold[i >> 3]! >> (i & 7)) & 1;
      const codec = scaledSign();
      const fresh = () => ({ values: new Float32Array(n), sent: 0 });
      const [errors, owner] = [Array.from({ length: ranks }, fresh), fresh()];
      const [given, out] = [new Float64Array(n), new Float32Array(n)];
      for (let step = 0; step < 50; step++) {
        const wires = errors.map((error, rank) => {
          const [m, g] = [1, 2].map((k) =>
            Float32Array.from({ length: n }, (_, i) => Math.sin(i * i + step * k + rank) + Math.cos(i)),
          ) as [Float32Array, Float32Array];
          for (let i = 0; i < n; i++) given[i]! += (0.9 * m[i]! + 0.1 * g[i]!) / ranks;
          const wire = new Uint8Array(codec.wireBytes(n));
          codec.encodeMomentum(wire, m, g, error.values, { keep: 0.9, add: 0.1, sent: error.sent, hold });
          error.sent = scaleOf(wire);
          return wire;
        });
        const wire = new Uint8Array(codec.wireBytes(n));
        codec.encodeSum(wire, wires, owner.values, { sent: owner.sent, scale: 1 / ranks, hold });
        owner.sent = scaleOf(wire);
        codec.decodeAdd(out, wire, { hold });
      }
      // What was sent last is still in the errors.
      const left = ({ values, sent }: typeof owner, i: number) =>
        isHeld(i) ? values[i]! : values[i]! - (values[i]! >= 0 ? sent : -sent);
      for (let i = 0; i < n; i++) {
        const kept = errors.reduce((sum, error) => sum + left(error, i) / ranks, left(owner, i));
        expect(Math.abs(out[i]! + kept - given[i]!)).toBeLessThan(1e-3); // fp32, sums of about 50
      }
      expect(Math.max(...out.map(Math.abs))).toBeGreaterThan(1);
    },
  );

  it("refuses what a pass over a momentum does not take", () => {
    const codec = scaledSign();
    const [x, short] = [new Float32Array(8), new Float32Array(7)];
    const wire = new Uint8Array(codec.wireBytes(8));
    const call = { keep: 0.9, add: 0.1, sent: 0 };
    expect(() => codec.encodeMomentum(wire, short, x, new Float32Array(8), call)).toThrow(
      "m has 7 floats, and error has 8",
    );
    expect(() => codec.encodeMomentum(wire, x, x, x, call)).toThrow("error overlaps m");
    expect(() => codec.encodeMomentum(wire, x, x, new Float32Array(8), { ...call, sent: Number.NaN })).toThrow(
      "sent is NaN",
    );
    expect(() => codec.encodeSum(wire, [wire], x, { sent: 0 })).toThrow("wire overlaps wires[0]");
    expect(() => codec.encodeSum(wire, [new Uint8Array(5).fill(255)], x, { sent: 0 })).toThrow(BadWireError);
    expect(codecNamed("sign")).not.toHaveProperty("encodeSum"); // other codecs have no such pass
  });

  it("refuses a wire whose scale is negative, infinite or NaN", () => {
    const codec = scaledSign({ block: 4 });
    const sum = new Float32Array(8);
    for (const bad of [-1, Infinity, Number.NaN]) {
      const wire = new Uint8Array(codec.wireBytes(8));
      new DataView(wire.buffer).setFloat32(4, bad, true);
      expect(() => codec.decodeAdd(sum, wire)).toThrow("no encoder writes such a wire");
    }
    expect([...sum]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it("sends in the end all that it was given: Σ decoded + error = Σ x, over 50 steps", () => {
    const n = 1000;
    const hold = new Uint8Array(n / 8);
    for (const parameters of [{}, { block: 64 }, { segments: [1, 599, 400] }]) {
      const codec = scaledSign(parameters);
      const wire = new Uint8Array(codec.wireBytes(n));
      const error = new Float32Array(n);
      const sent = new Float64Array(n);
      const given = new Float64Array(n);
      for (let step = 0; step < 50; step++) {
        const x = gradients(n, step);
        codec.encodeWithFeedback(wire, x, error, { zero: "plus", hold });
        const decoded = new Float32Array(n);
        codec.decodeAdd(decoded, wire, { hold });
        for (let i = 0; i < n; i++) {
          sent[i]! += decoded[i]!;
          given[i]! += x[i]!;
        }
      }
      for (let i = 0; i < n; i++) expect(Math.abs(sent[i]! + error[i]! - given[i]!)).toBeLessThan(50 * 1e-6);
      expect(Math.max(...given.map(Math.abs))).toBeGreaterThan(1); // an error of all would be seen
    }
  });

  describe("carries DeepSpeed's compressed all-reduce", () => {
    // x_i[k] = sin(k + 1 + i / 2) on two ranks, the same inputs twice, errors carried. Scales and signs as DeepSpeed's
    // compressed_allreduce has them in float64: every rank sends each server its chunk, each server answers with its
    // own.
    const inputs = (n: number) =>
      [0, 0.5].map((phase) => Float32Array.from({ length: n }, (_, k) => Math.sin(k + 1 + phase)));

    it("with its scales and signs where nothing is padded", () => {
      const all = allReduce(inputs(16), 16);
      const [first, second] = [all.step(), all.step()];
      near(first.scales, [0.61362696, 0.6627913]);
      expect(first.signs).toBe("++---+++----+++-");
      near(first.workerErrors, [1.12984865, 1.33867742]);
      near(first.serverErrors, [0.89359049, 0.67028745]);
      near(second.scales, [0.86332479, 0.81533844]);
      expect(second.signs).toBe("+++---+++---+++-");
      near(second.workerErrors, [1.84443197, 1.51279667]);
      near(second.serverErrors, [0.36248736, 1.51207044]);
    });

    it("with those that it has of padding, where padding is sent as numbers", () => {
      const all = allReduce(inputs(10), 16);
      const [first, second] = [all.step(), all.step()];
      near(first.scales, [0.4906871, 0.52999384]);
      expect(first.signs.slice(0, 10)).toBe("++---+++--");
      near(second.scales, [0.81002652, 0.88766618]);
      expect(second.signs.slice(0, 10)).toBe("++----+++-");
    });
  });

  it.skipIf(!python)(`equals numpy on fresh inputs${needsPython}`, () => {
    const requests = [1, 64, 257, 5000].flatMap((n) =>
      [{}, { block: 64 }, { block: 37 }, { segments: segments(n) }].map((parameters) => ({
        codec: "scaled-sign",
        parameters,
        call: { zero: "plus", hold: toHex(anyBytes(Math.ceil(n / 8), n)) },
        x: [...gradients(n, Date.now() + n)],
      })),
    );
    const wires = requests.map(({ x, parameters, call }) => {
      const codec = scaledSign(parameters);
      const wire = new Uint8Array(codec.wireBytes(x.length));
      codec.encode(wire, new Float32Array(x), { zero: "plus", hold: Buffer.from(call.hold, "hex") });
      return toHex(wire);
    });
    expect(wires).toEqual(askNumpy(requests));
  });
});

const scaleOf = (wire: Uint8Array): number => new DataView(wire.buffer).getFloat32(0, true);

function near(given: readonly number[], expected: readonly number[]): void {
  expect(given.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(given[i]).toBeCloseTo(value, 6);
}

const norm = (x: Float32Array): number => Math.hypot(...x);

/**
 * Two-way error feedback among as many workers as inputs, each also the server of one chunk of `length` / workers
 * floats.
 */
function allReduce(inputs: readonly Float32Array[], length: number) {
  const codec = scaledSign();
  const ranks = inputs.length;
  const chunk = length / ranks;
  const x = inputs.map((input) => {
    const padded = new Float32Array(length);
    padded.set(input);
    return padded;
  });
  const errors = x.map(() => new Float32Array(length));
  const serverErrors = x.map(() => new Float32Array(chunk));

  return {
    step() {
      const mean = new Float32Array(length);
      for (const [i, input] of x.entries()) {
        const wire = new Uint8Array(codec.wireBytes(length));
        codec.encodeWithFeedback(wire, input, errors[i]!, { zero: "plus" });
        codec.decodeAdd(mean, wire, { scale: 1 / ranks });
      }
      const answers = serverErrors.map((error, j) => {
        const wire = new Uint8Array(codec.wireBytes(chunk));
        codec.encodeWithFeedback(wire, mean.subarray(j * chunk, (j + 1) * chunk), error, { zero: "plus" });
        return wire;
      });
      const result = new Float32Array(length);
      for (const [j, wire] of answers.entries()) codec.decodeAdd(result.subarray(j * chunk, (j + 1) * chunk), wire);
      return {
        scales: answers.map(scaleOf),
        signs: [...result].map((value) => (value > 0 ? "+" : "-")).join(""),
        workerErrors: errors.map(norm),
        serverErrors: serverErrors.map(norm),
      };
    },
  };
}
