import type { EncodeCall, Parameters } from "@terse/native-codecs";
import { NotFiniteError } from "@terse/native-codecs";
import { afterEach, describe, expect, it } from "vitest";
import type { Codec } from "./codec.ts";
import { definition as dctTopK } from "./codecs/dct-top-k/dct-top-k.ts";
import { definition as f16 } from "./codecs/f16/f16.ts";
import { definition as l1 } from "./codecs/l1/l1.ts";
import { definition as qsgd } from "./codecs/qsgd/qsgd.ts";
import { codecNamed, codecs } from "./codecs.ts";
import { withFeedback } from "./plain-feedback.ts";
import { goldenFrames } from "./testing/golden-frames.ts";
import { gradients } from "./testing/inputs.ts";
import { useThreads } from "./threads.ts";

const n = 3 * 2 ** 18 + 4321; // enough for three threads; the last part ends in the middle of a byte
const x = gradients(n, 1);
const others: Readonly<Record<string, Parameters>> = {
  count: { bits: 1, width: 8, ranks: 100 },
  l1: { bits: 4, block: 1000 },
  linf: { bits: 5, segments: [n - 77_777, 77_777] },
  qsgd: { bits: 3, block: 512 },
  "top-k": { k: 1000 },
  "dct-top-k": { block: 64, k: 4 },
};
/** A codec that has no line above: with parameters of its golden frames. */
const frames = goldenFrames();
const parametersOf = (name: string): Parameters =>
  others[name] ?? frames.find(({ codec, parameters }) => codec === name && !parameters.segments)!.parameters;

const definitions = { l1, qsgd, f16, "dct-top-k": dctTopK };

const call = ({ takes }: Codec): EncodeCall => ({
  ...(takes.zero && { zero: "plus" }),
  ...(takes.random && { seed: 1, step: 2, index: 64 }),
});

/** A wire, and what it adds, as bytes. */
function both(codec: Codec) {
  const wire = new Uint8Array(codec.wireBytes(n));
  const error = new Float32Array(n);
  codec.encodeWithFeedback(wire, x, error, call(codec));
  const sum = x.slice();
  codec.decodeAdd(sum, wire, { scale: 0.5 });
  return [wire, error, sum].map(({ buffer }) => Buffer.from(buffer));
}

describe("several threads", () => {
  afterEach(() => useThreads(1));

  it.each(Object.keys(codecs))("write and add what one does: %s", (name) => {
    const codec = codecNamed(name, parametersOf(name));
    useThreads(1);
    const expected = both(codec);
    useThreads(3);
    expect(both(codec).map((bytes, i) => bytes.equals(expected[i]!))).toEqual([true, true, true]);
  });

  it.each([
    ["int8", { block: 1000 }],
    ["int8", { segments: [5, 0, 2 ** 19 + 3, 100, n - 2 ** 19 - 108, 0] }],
    ["scaled-sign", { block: 2 ** 16 }],
    ["terngrad", { block: 77, clip: 2.5 }],
    ["l1", { bits: 4 }],
    ["l1", { bits: 5, width: 8, ranks: 8, unscaled: true }],
    ["linf", { bits: 4, unscaled: true }],
    ["qsgd", { bits: 3 }],
    ["dct-top-k", { block: 100, k: 3 }],
    ["top-k", { k: 1 }],
    ["top-k", { k: 50_001 }],
    ["top-k", { k: 300_000 }],
  ] as const)("compute scales and choose as one does: %s %o", (name, parameters) => {
    const codec = codecNamed(name, parameters as Parameters);
    useThreads(1);
    const expected = both(codec);
    useThreads(3);
    expect(both(codec).map((bytes, i) => bytes.equals(expected[i]!))).toEqual([true, true, true]);
  });

  it.each([
    ...Object.keys(codecs).map((name) => [name, parametersOf(name)] as const),
    ["l1", { bits: 4 }],
    ["l1", { bits: 3, block: 4096 }],
    ["linf", { bits: 5 }],
    ["qsgd", { bits: 4 }],
    ["qsgd", { bits: 4, segments: [70_001, n - 70_001] }],
    ["int8", {}],
    ["int8", { block: 256 }],
    ["bin-means", { bits: 4 }],
    ["scaled-sign", {}],
    ["terngrad", { block: 512 }],
    ["f16", {}],
    ["top-k", { k: 5000 }],
  ] as const)("keep of a long vector and of a sum what the plain steps keep: %s %o", (name, parameters) => {
    const codec = codecNamed(name, parameters as Parameters);
    for (const threads of [1, 3]) {
      useThreads(threads);
      const wire = new Uint8Array(codec.wireBytes(n));
      const expectedWire = new Uint8Array(wire.length);
      const error = x.map((value) => value / 4);
      const expected = error.map((value, i) => value + x[i]!);
      codec.encode(expectedWire, expected, call(codec));
      codec.decodeAdd(expected, expectedWire, { scale: -1 });
      codec.encodeWithFeedback(wire, x, error, call(codec));
      expect(Buffer.from(wire).equals(Buffer.from(expectedWire))).toBe(true);
      expect(Buffer.from(error.buffer).equals(Buffer.from(expected.buffer))).toBe(true);

      const [wires, sum] = [[wire.slice(), wire.slice()], { scale: 0.5, decay: 0.75 }];
      for (const [i, value] of expected.entries()) expected[i] = 0.75 * value;
      for (const one of wires) codec.decodeAdd(expected, one, { scale: 0.5 });
      codec.encode(expectedWire, expected, call(codec));
      codec.decodeAdd(expected, expectedWire, { scale: -1 });
      codec.encodeSumWithFeedback(wire, wires, error, { ...call(codec), ...sum });
      expect(Buffer.from(wire).equals(Buffer.from(expectedWire))).toBe(true);
      expect(Buffer.from(error.buffer).equals(Buffer.from(expected.buffer))).toBe(true);

      const [decoded, added] = [x.slice(), new Float32Array(n)];
      codec.decode(decoded, wire, { scale: 0.3 });
      codec.decodeAdd(added, wire, { scale: 0.3 });
      expect(Buffer.from(decoded.buffer).equals(Buffer.from(added.buffer))).toBe(true);
    }
  });

  it("name the first bad element, whichever part it lies in", () => {
    useThreads(3);
    for (const name of ["sign", "bf16", "scaled-sign"]) {
      const codec = codecNamed(name);
      for (const first of [0, 70_001, n - 1]) {
        const bad = x.slice();
        bad[n - 1] = Number.NaN;
        bad[first] = Number.NaN;
        const encode = () => codec.encode(new Uint8Array(codec.wireBytes(n)), bad, call(codec));
        expect(encode).toThrow(NotFiniteError);
        expect(encode).toThrow(`x[${first}]`);
      }
    }
  });

  it("name it where a chunk of a transform lies in two parts", () => {
    useThreads(3);
    const parts = x.subarray(0, 3 * 2 ** 18);
    const codec = codecNamed("dct-top-k", { block: 100, k: 3 });
    const wire = new Uint8Array(codec.wireBytes(parts.length));
    for (const first of [2 ** 18 - 1, 2 ** 18, 2 ** 18 + 50]) {
      const bad = parts.slice();
      bad[first] = Number.NaN;
      expect(() => codec.encode(wire, bad)).toThrow(`x[${first}] is NaN`);
      bad[first] = 3e38;
      expect(() => codec.encode(wire, bad)).not.toThrow();
      bad.fill(3e38, 2 ** 18 - 40, 2 ** 18 + 50);
      expect(() => codec.encode(wire, bad)).toThrow(`x[${2 ** 18 - 40}] is 3`);
    }
  });

  it("leave the error as it was where something is refused, and name x before a sum", () => {
    // Numbers that f16 writes exactly, and that add exactly.
    const small = Float32Array.from({ length: n }, (_, i) => ((i * 7919) % 1024) - 512);
    const before = small.map((value) => value / 2);
    for (const threads of [1, 3]) {
      useThreads(threads);
      for (const codec of [codecNamed("f16"), codecNamed("int8", { block: 256 })]) {
        const wire = new Uint8Array(codec.wireBytes(n));
        const refuse = (given: Float32Array, initialError: Float32Array) => {
          const error = initialError.slice();
          expect(() => codec.encodeWithFeedback(wire, given, error)).toThrow();
          expect(Buffer.from(error.buffer).equals(Buffer.from(initialError.buffer))).toBe(true);
          try {
            codec.encodeWithFeedback(wire, given, error);
          } catch (refused) {
            return (refused as Error).message;
          }
        };
        for (const at of [0, 5000, 2 ** 18 + 1, n - 1]) {
          const initialError = before.with(at, 3e38);
          const given = small.with(at, 3e38);
          expect(refuse(given, initialError)).toContain(`x[${at}] + error[${at}] is Infinity`);
          expect(refuse(given.with(n - 1, Number.NaN), initialError)).toContain(`x[${n - 1}] is NaN`);
        }
        if (codec.name === "f16") {
          expect(refuse(small.with(n - 7, 65_504), before.with(n - 7, 65_504))).toContain(`is 131008`);
        }
      }
    }
  });

  it.each([
    ["l1", { bits: 4, block: 1030 }],
    ["l1", { bits: 4, block: 70_000 }],
    ["l1", { bits: 4, width: 8, ranks: 8, unscaled: true, block: 1030 }],
    ["l1", { bits: 4, segments: [1000, 0, 200_000, n - 201_000] }],
    ["qsgd", { bits: 3, block: 192 }],
    ["qsgd", { bits: 3, block: 5000 }],
    ["dct-top-k", { block: 1000, k: 3 }],
    ["f16", {}],
  ])("name the element that the definition names, where two are refused: %s %j", (name, parameters: Parameters) => {
    const codec = codecNamed(name, parameters);
    const wire = new Uint8Array(codec.wireBytes(n));
    const zeros = new Float32Array(n);
    // Too large for one scale together: [0, end). Their sum with x is infinite: at one element.
    for (const [end, infinite] of [
      [1000, 1500],
      [3000, 1500],
      [1000, 300_000],
      [300_000, 500],
    ] as const) {
      const error = zeros.slice().fill(3e38, 0, end).with(infinite, 3e38);
      const given = zeros.with(infinite, 3e38);
      const seeds = call(codec);
      const first = withFeedback(
        definitions[name as keyof typeof definitions],
        wire.slice(),
        given,
        error.slice(),
        parameters,
        seeds,
      );
      for (const threads of [1, 3]) {
        useThreads(threads);
        const run = () => codec.encodeWithFeedback(wire, given, error.slice(), seeds);
        expect(run).toThrow(`x[${first}] + error[${first}] is `);
      }
    }
  });

  it("give back what was taken away where a later block has no scale", () => {
    const codec = codecNamed("l1", { bits: 4, block: 4096 });
    const small = Float32Array.from({ length: n }, (_, i) => ((i * 7919) % 1024) - 512);
    const initialError = small.slice().fill(3e38, 3 * 4096, 4 * 4096);
    for (const threads of [1, 3]) {
      useThreads(threads);
      const error = initialError.slice();
      expect(() => codec.encodeWithFeedback(new Uint8Array(codec.wireBytes(n)), small, error)).toThrow(
        /x\[\d+\] \+ error\[\d+\] is [\d.]+e\+38, which this codec cannot write/,
      );
      // What a level stands for is some hundred: sums were rounded to some 2^-16.
      const off = error.findIndex(
        (value, i) => Math.abs(value - initialError[i]!) > Math.max(2 ** -12, initialError[i]! * 2 ** -20),
      );
      expect(off).toBe(-1);
    }
  });

  it("are refused where their number makes no sense", () => {
    for (const threads of [0, -1, 1.5, Number.NaN]) expect(() => useThreads(threads)).toThrow("threads is");
  });
});
