/**
 * What every implementation of every codec must do. A codec's own test calls this with its configurations and its
 * vectors.
 */
import { readFileSync } from "node:fs";
import {
  type CodecKernel,
  type EncodeCall,
  NotFiniteError,
  codecs as nativeCodecs,
  type Parameters,
} from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import type { Definition } from "../codec.ts";
import { codecNamed } from "../codecs.ts";
import { implementations } from "../implementation.ts";
import { sumWithFeedback, withFeedback } from "../plain-feedback.ts";
import { scaleGroupsWithin } from "../shared/scale-groups/scale-groups.ts";
import { fromHex, toHex } from "./hex.ts";
import { anyBytes, anyFloats } from "./inputs.ts";

/** Inputs and exact outputs from outside this repository, as `vectors.py` writes them. Packed bytes are hexadecimal. */
export interface Vectors {
  cases: {
    name: string;
    parameters: Parameters;
    call: { zero?: "plus" | "minus"; hold?: string; seed?: number; step?: number; index?: number };
    x: number[];
    wire: string;
    scale: number;
    sum: number[];
  }[];
}

/** The vectors beside a codec's test: `vectorsBeside(import.meta.url)`. */
export const vectorsBeside = (url: string): Vectors => JSON.parse(readFileSync(new URL("vectors.json", url), "utf8"));

/** One way to use a codec. */
export interface Configuration {
  /** The codec's parameters for n floats; {} unless given. */
  readonly parameters?: (n: number) => Parameters;
  /** Options of `encode` for n floats; unless given, all that the codec takes, with an arbitrary seed. */
  readonly call?: (n: number) => EncodeCall;
  /** n numbers that the codec can write; any finite floats unless given. */
  readonly floats?: (n: number, seed: number) => Float32Array;
  /** Fewest floats that it writes; 0 unless given. */
  readonly least?: number;
}

export interface CodecUnderTest {
  readonly definition: Definition;
  readonly vectors: Vectors;
  /** The configurations to test, named by what is special about each. */
  readonly configurations: Readonly<Record<string, Configuration>>;
}

// 0…70, a prime, and a prime beyond two groups of pages
const lengths = [...Array.from({ length: 71 }, (_, n) => n), 128, 192, 1021, 8269];

export function codecContract({ definition, vectors, configurations }: CodecUnderTest): void {
  const { name, takes } = definition;
  const { kernels, missing } = implementations(definition, nativeCodecs);
  const configured = Object.entries(configurations).map(([how, configuration]) => {
    const { parameters = () => ({}), call = callsFor(definition), floats = anyFloats, least = 0 } = configuration;
    return { how, parameters, call, floats, least, lengths: lengths.filter((n) => n >= least) };
  });

  it.skipIf(missing)(`runs natively here${missing ? ` (skipped: ${missing})` : ""}`, () => {
    expect(kernels.map((k) => k.implementation)).toContain("scalar");
  });

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))("$by", ({ kernel }) => {
    it.each(vectors.cases)(
      "writes and reads the golden bytes: $name, $parameters, $call",
      ({ x, parameters, call, wire, scale, sum }) => {
        const hold = call.hold === undefined ? undefined : fromHex(call.hold);
        expect(kernel.wireBytes(x.length, parameters)).toBe(wire.length / 2);
        const bytes = new Uint8Array(wire.length / 2);
        expect(kernel.encode(bytes, new Float32Array(x), parameters, { ...call, hold })).toBe(x.length);
        expect(toHex(bytes)).toBe(wire);
        const sums = new Float32Array(x);
        expect(kernel.decodeAdd(sums, bytes, parameters, { scale, hold })).toBe(true);
        expect(bits(sums)).toEqual(bits(new Float32Array(sum)));
      },
    );

    describe.skipIf(!definition.encodeMomentum)("with error compensation in one pass", () => {
      const chunks = [...lengths, 70_001]; // of sums of squares
      const sizes = chunks.flatMap((n) => [undefined, anyBytes(Math.ceil(n / 8), 4)].map((hold) => ({ n, hold })));
      const given = (n: number, seed: number) => anyFloats(n, seed).map((x) => (Math.abs(x) > 100 ? x / 1e38 : x));

      it("encodes a momentum as the plain passes do, bit for bit, and touches nothing outside", () => {
        for (const { n, hold } of sizes) {
          const call = { keep: 0.9, add: (1 - 0.9) * 0.37, sent: 0.21, hold, zero: "plus" } as const;
          const [m, g] = [given(n, 2), given(n, 3)];
          const [mine, expected] = [room(kernel, given(n, 1), {}), room(definition, given(n, 1), {})];
          for (let step = 0; step < 2; step++) {
            expect(kernel.encodeMomentum!(mine.wire, m, g, mine.x, {}, call)).toBe(n);
            expect(definition.encodeMomentum!(expected.wire, m, g, expected.x, {}, call)).toBe(n);
            expect(mine.everything().equals(expected.everything()), `n = ${n}`).toBe(true);
          }
          const plain = new Uint8Array(mine.wire.length);
          expect(kernel.encode(plain, mine.x, {}, { zero: "plus", hold })).toBe(n);
          expect(toHex(mine.wire), `n = ${n}`).toBe(toHex(plain));
        }
      });

      it.each([1, 2, 5])("encodes the sum of %i wires as the plain passes do, bit for bit", (ranks) => {
        for (const { n, hold } of sizes) {
          const wires = Array.from({ length: ranks }, (_, r) => {
            const wire = new Uint8Array(kernel.wireBytes(n, {}));
            definition.encode(wire, given(n, 10 + r), {}, { zero: "plus", hold });
            return wire;
          });
          const call = { sent: 0.21, scale: 1 / ranks, hold, zero: "plus" } as const;
          const [mine, expected] = [room(kernel, given(n, 1), {}), room(definition, given(n, 1), {})];
          expect(kernel.encodeSum!(mine.wire, wires, mine.x, {}, call)).toBe(n);
          expect(definition.encodeSum!(expected.wire, wires, expected.x, {}, call)).toBe(n);
          expect(mine.everything().equals(expected.everything()), `n = ${n}`).toBe(true);
        }
      });

      it("names the first element to be sent that is not finite, masked or not, and refuses a damaged wire", () => {
        const n = 200;
        for (const hold of [undefined, new Uint8Array(25).fill(255)])
          for (const at of [0, 130, 199]) {
            const [wire, g] = [new Uint8Array(kernel.wireBytes(n, {})), given(n, 3)];
            g[at] = Number.NEGATIVE_INFINITY;
            g[199] = Number.NaN;
            const call = { keep: 0.9, add: 0.1, sent: 0, hold, zero: "plus" } as const;
            expect(kernel.encodeMomentum!(wire, given(n, 2), g, given(n, 1), {}, call)).toBe(at);
          }
        const [error, damaged] = [given(n, 1), new Uint8Array(kernel.wireBytes(n, {})).fill(255)];
        const wire = new Uint8Array(damaged.length);
        expect(kernel.encodeSum!(wire, [damaged], error, {}, { sent: 0.5, scale: 1, zero: "plus" })).toBe(-1);
        expect(bits(error)).toEqual(bits(given(n, 1)));
        error[130] = Number.NaN;
        expect(kernel.encodeSum!(wire, [], error, {}, { sent: 0, scale: 1, zero: "plus" })).toBe(130);
      });
    });

    describe.each(configured)("$how", ({ parameters, call, floats, lengths }) => {
      it("gives what the definition gives, for every length, at odd offsets, and touches nothing outside", () => {
        for (const n of lengths) {
          const given = parameters(n);
          const calls = call(n);
          const x = floats(n, 7 * n + 1);
          const mine = room(kernel, x, given);
          const expected = room(definition, x, given);
          expect(kernel.encode(mine.wire, mine.x, given, calls), `n = ${n}`).toBe(n);
          definition.encode(expected.wire, expected.x, given, calls);
          expect(toHex(mine.wire), `n = ${n}, the wire`).toBe(toHex(expected.wire));
          expect(kernel.decodeAdd(mine.x, mine.wire, given, { scale: 0.3, hold: calls.hold })).toBe(true);
          definition.decodeAdd(expected.x, expected.wire, given, { scale: 0.3, hold: calls.hold });
          const same = mine.everything().equals(expected.everything());
          expect(same, `n = ${n}, the sums, or what lies around`).toBe(true);
        }
      });

      it("reads any bytes as the definition does: the same sums, or the same refusal with nothing added", () => {
        for (const n of lengths.filter((length) => length <= 200)) {
          for (let seed = 0; seed < 4; seed++) {
            const given = parameters(n);
            const x = anyFloats(n, seed).map((value) => value / 4);
            const mine = room(kernel, x, given);
            const expected = room(definition, x, given);
            const bytes = anyBytes(mine.wire.length, n + 1000 * seed);
            mine.wire.set(bytes);
            expected.wire.set(bytes);
            const taken = kernel.decodeAdd(mine.x, mine.wire, given, { scale: 0.25 });
            expect(taken, `n = ${n}`).toBe(definition.decodeAdd(expected.x, expected.wire, given, { scale: 0.25 }));
            expect(mine.everything().equals(expected.everything()), `n = ${n}`).toBe(true);
            if (!taken) expect(bits(mine.x)).toEqual(bits(x));
          }
        }
      });

      it("names the first NaN or infinity", () => {
        for (const n of [1, 8, 63, 64, 65, 200, 8269].filter((length) => lengths[0]! <= length)) {
          for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
            for (const first of [0, n >> 1, n - 1]) {
              const x = floats(n, n);
              x[n - 1] = Number.NaN;
              x[first] = bad;
              const wire = new Uint8Array(kernel.wireBytes(n, parameters(n)));
              expect(kernel.encode(wire, x, parameters(n), call(n))).toBe(first);
            }
          }
        }
      });

      it("decodes to the bits of what is added to zeros", () => {
        for (const n of lengths) {
          const [given, calls] = [parameters(n), call(n)];
          const wire = new Uint8Array(kernel.wireBytes(n, given));
          if (definition.encode(wire, floats(n, n), given, calls) < n) continue;
          const [x, sum] = [floats(n, n), new Float32Array(n)];
          const options = { scale: 0.3, hold: calls.hold, units: calls.units };
          expect(definition.decodeAdd(sum, wire, given, options)).toBe(true);
          if (!kernel.decode) x.fill(0);
          expect((kernel.decode ?? kernel.decodeAdd)(x, wire, given, options)).toBe(true);
          expect(bits(x)).toEqual(bits(sum));
        }
      });

      it("keeps in `error` what it could not send, as the definition does", () => {
        for (const n of lengths.filter((length) => length <= 200)) {
          const given = parameters(n);
          const calls = call(n);
          const error = new Float32Array(n);
          const expected = new Float32Array(n);
          const wire = new Uint8Array(kernel.wireBytes(n, given));
          const wanted = new Uint8Array(wire.length);
          const run =
            kernel.encodeWithFeedback ?? ((w, x, e, p, c) => withFeedback(kernel, w, x as never, e as never, p, c));
          // Numbers that add without leaving the range of any codec.
          const x = floats(n, n + 5).map((value) => (Math.abs(value) > 100 ? 1 : Math.abs(value) < 1e-3 ? 0 : value));
          for (const decay of [undefined, 1, 0.95, 0.3]) {
            const mine = run(wire, x, error, given, { ...calls, decay });
            const theirs = withFeedback(definition, wanted, x, expected, given, { ...calls, decay });
            expect(mine).toBe(theirs);
            if (mine < n) {
              // The error keeps its old values up to rounding.
              for (const [i, value] of error.entries()) expect(value).toBeCloseTo(expected[i]!, 4);
              break;
            }
            expect(toHex(wire)).toBe(toHex(wanted));
            expect(bits(error)).toEqual(bits(expected));
          }
        }
      });

      it("gives the error its old values back, up to rounding, where x has a NaN, and names the first one", () => {
        const run =
          kernel.encodeWithFeedback ?? ((w, x, e, p, c) => withFeedback(kernel, w, x as never, e as never, p, c));
        for (const n of [65, 8269]) {
          const given = parameters(n);
          const x = floats(n, n).map((value) => (Math.abs(value) > 100 ? 1 : value));
          const before = x.map((value, i) => (i % 3 === 0 ? 0 : value));
          const size = Math.max(...x.map(Math.abs));
          for (const [decay, first] of [
            [1, n - 1],
            [0.9, n >> 1],
          ] as const) {
            const bad = x.map((value, i) => (i === first || i === n - 1 ? Number.NaN : value));
            const error = before.slice();
            const wire = new Uint8Array(kernel.wireBytes(n, given));
            expect(run(wire, bad, error, given, { ...call(n), decay })).toBe(first);
            const off = error.reduce((most, value, i) => Math.max(most, Math.abs(value - before[i]!)), 0);
            expect(off).toBeLessThanOrEqual(1e-5 * size); // NaN is not
          }
        }
      });

      it("sums wires, and keeps in `error` what it could not send of the sum, as the definition does", () => {
        for (const n of lengths.filter((length) => length <= 200)) {
          const given = parameters(n);
          const calls = call(n);
          const wires = [0, 1, 2].map((seed) => {
            const x = floats(n, n + seed).map((value) => (Math.abs(value) > 100 ? 1 : value));
            const wire = new Uint8Array(kernel.wireBytes(n, given));
            expect(definition.encode(wire, x, given, calls)).toBe(n);
            return wire;
          });
          const [error, expected] = [new Float32Array(n), new Float32Array(n)];
          const [wire, wanted] = [new Uint8Array(wires[0]!.length), new Uint8Array(wires[0]!.length)];
          const run =
            kernel.encodeSumWithFeedback ?? ((w, a, e, p, c) => sumWithFeedback(kernel, w, a, e as never, p, c));
          for (const decay of [undefined, 1, 0.95, 0.3]) {
            const options = { ...calls, decay, scale: 1 / 3 };
            const mine = run(wire, wires, error, given, options);
            const theirs = sumWithFeedback(definition, wanted, wires, expected, given, options);
            expect(mine).toBe(theirs);
            if (mine < n) break; // then the errors are undefined
            expect(toHex(wire)).toBe(toHex(wanted));
            expect(bits(error)).toEqual(bits(expected));
          }
        }
      });
    });
  });

  describe.each(configured)("as people call it, $how", ({ parameters, call, floats, least }) => {
    const n = Math.max(20, least);
    const codec = codecNamed(name, parameters(n));
    const x = floats(n, 3);
    const wire = new Uint8Array(codec.wireBytes(n));

    it("says what it is, and does what its kernel does", () => {
      expect(codec.name).toBe(name);
      expect(codec.parameters).toEqual(parameters(n));
      codec.encode(wire, x, call(n));
      const expected = new Uint8Array(wire.length);
      definition.encode(expected, x, parameters(n), call(n));
      expect(toHex(wire)).toBe(toHex(expected));
    });

    it("refuses what is not finite, with the index", () => {
      const bad = floats(n, 3);
      bad[2] = Number.NaN;
      bad[n - 1] = Number.NaN;
      const encode = () => codec.encode(wire, bad, call(n));
      expect(encode).toThrow(NotFiniteError);
      expect(encode).toThrow(`${name}.encode: x[2] is NaN`);
    });

    it("refuses to write over what it reads, and writes nothing then", () => {
      const given = call(n);
      const maskBytes = Math.ceil(n / 8);
      const room = new Uint8Array(4 * n + 4 * n + wire.length + maskBytes);
      const all = new Float32Array(room.buffer, 0, 2 * n);
      const [here, other] = [all.subarray(0, n), all.subarray(n)];
      here.set(x);
      const before = toHex(room);
      const inside = room.subarray(4 * n - 1, 4 * n - 1 + wire.length); // its first byte is the last of `here`
      const apart = room.subarray(8 * n, 8 * n + wire.length);
      const name = codec.name;
      expect(() => codec.encode(inside, here, given)).toThrow(`${name}.encode: wire overlaps x`);
      expect(() => codec.decodeAdd(here, inside)).toThrow(`${name}.decodeAdd: sum overlaps wire`);
      const within = (error: Float32Array, to: Uint8Array) => () => codec.encodeWithFeedback(to, here, error, given);
      expect(within(all.subarray(n - 1, 2 * n - 1), apart)).toThrow("error overlaps x");
      expect(within(other, room.subarray(8 * n - 1, 8 * n - 1 + wire.length))).toThrow("error overlaps wire");
      if (takes.hold) {
        const hold = room.subarray(8 * n + wire.length - 1, 8 * n + wire.length - 1 + maskBytes);
        expect(() => codec.encode(apart, here, { ...given, hold })).toThrow("wire overlaps hold");
        expect(() => codec.decodeAdd(here, apart, { hold: room.subarray(0, maskBytes) })).toThrow("sum overlaps hold");
      }
      expect(toHex(room)).toBe(before);
      // Beside one another they may lie.
      codec.encodeWithFeedback(apart, here, other, given);
      const alone = new Uint8Array(wire.length);
      codec.encode(alone, x, given);
      expect(toHex(apart)).toBe(toHex(alone));
    });

    it("multiplies the error by its decay: e ← β e + x − decode(wire), in float64 up to rounding", () => {
      const decay = 0.9;
      const error = new Float32Array(n);
      const x = floats(n, 3).map((value) => (Math.abs(value) > 100 ? 1 : Math.abs(value) < 1e-3 ? 0 : value));
      const wire = new Uint8Array(codec.wireBytes(n));
      for (let step = 0; step < 5; step++) {
        const before = [...error];
        try {
          codec.encodeWithFeedback(wire, x, error, { ...call(n), decay });
        } catch (refused) {
          expect((refused as Error).message).toContain("which this codec cannot write"); // count: whole numbers only
          return;
        }
        const sent = new Float32Array(n);
        codec.decodeAdd(sent, wire, { hold: call(n).hold });
        const size = Math.max(1e-3, ...x.map(Math.abs), ...before.map(Math.abs), ...sent.map(Math.abs));
        for (const [i, value] of error.entries())
          expect(Math.abs(value - (decay * before[i]! + x[i]! - sent[i]!))).toBeLessThan(1e-6 * size);
      }
    });

    it("has codecs for parts, which read what the layout says is a part's", () => {
      const long = 8269;
      const whole = codecNamed(name, parameters(long));
      const x = floats(long, 9);
      const wire = new Uint8Array(whole.wireBytes(long));
      whole.encode(wire, x, call(long));
      const expected = new Float32Array(long);
      whole.decodeAdd(expected, wire);
      const middle = Math.min(long, whole.alignment * Math.max(1, Math.floor(long / 2 / whole.alignment)));
      for (const [begin, end] of [
        [0, middle],
        [middle, long],
      ] as const) {
        const part = whole.forPart(begin, end, long);
        const partWire = new Uint8Array(part.wireBytes(end - begin));
        if (whole.layout) {
          const { fieldBits, scales } = whole.layout;
          const [first, count] = scaleGroupsWithin(whole.parameters, begin, end).map((groups) => 4 * scales * groups);
          const fields = wire.subarray(wire.length - Math.ceil((long * fieldBits) / 8));
          partWire.set(wire.subarray(first, first! + count!));
          partWire.set(fields.subarray((begin * fieldBits) / 8, Math.ceil((end * fieldBits) / 8)), count);
          const sum = new Float32Array(end - begin);
          part.decodeAdd(sum, partWire);
          expect(bits(sum)).toEqual(bits(expected.subarray(begin, end)));
        } else if (end > begin) {
          part.encode(partWire, x.subarray(begin, end), call(end - begin));
        }
      }
    });

    it("keeps the parameters that it was made with", () => {
      const given: { -readonly [name in keyof Parameters]: unknown } = structuredClone(parameters(n));
      const copied = codecNamed(name, given as Parameters);
      if (Array.isArray(given.segments)) given.segments.fill(0);
      for (const each of Object.keys(given) as (keyof Parameters)[]) given[each] = undefined;
      expect(copied.parameters).toEqual(parameters(n));
      const again = new Uint8Array(copied.wireBytes(n));
      copied.encode(again, x, call(n));
      codec.encode(wire, x, call(n));
      expect(toHex(again)).toBe(toHex(wire));
    });

    it("refuses numbers of floats that are none, and memory that is no longer there", () => {
      for (const count of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 49, "8", undefined])
        expect(() => codec.wireBytes(count as number)).toThrow(`wireBytes: n is ${count}, and must be a whole number`);
      const gone = new Float32Array(n);
      const goneWire = new Uint8Array(wire.length);
      structuredClone([gone, goneWire], { transfer: [gone.buffer, goneWire.buffer] });
      expect(() => codec.encode(goneWire, gone, call(n))).toThrow("x has lost its memory");
      expect(() => codec.encode(goneWire, x, call(n))).toThrow("wire has lost its memory");
      expect(() => codec.encodeWithFeedback(wire, x, gone, call(n))).toThrow("error has lost its memory");
      expect(() => codec.decodeAdd(gone, goneWire)).toThrow("sum has lost its memory");
      const shrinks = new ArrayBuffer(4 * n, { maxByteLength: 4 * n });
      const shrunk = new Float32Array(shrinks, 0, n);
      shrinks.resize(4 * n - 4);
      expect(() => codec.decodeAdd(shrunk, goneWire)).toThrow("sum has lost its memory");
      const memory = { pointer: 4096n, length: n, dtype: "f32", device: "cpu" } as const;
      for (const pointer of [0n, -4n, 4098n, 2n ** 64n])
        expect(() => codec.encode(wire, { ...memory, pointer }, call(n))).toThrow(`x.pointer is ${pointer}, and must`);
      for (const length of [-n, n + 0.5, undefined as never])
        expect(() => codec.encode(wire, { ...memory, length }, call(n))).toThrow(`x.length is ${length}, and must`);
    });

    it("is defined for indices of 31 bits, and refuses more", () => {
      const definition = codec.kernels().at(-1)!;
      const long = Object.defineProperty(new Float32Array(0), "length", { value: 2 ** 31 });
      const sentence = "at most 2147483647 floats, got 2147483648";
      expect(() => definition.encode(wire, long, codec.parameters, call(n))).toThrow(sentence);
      expect(() => definition.decodeAdd(long, wire, codec.parameters, { scale: 1 })).toThrow(sentence);
    });

    it("refuses wrong lengths, types and options in one sentence each", () => {
      const given = call(n);
      const short = wire.subarray(1);
      const sentence = new RegExp(`wire has \\d+ bytes, and ${n} floats take`);
      expect(() => codec.encode(short, x, given)).toThrow(sentence);
      expect(() => codec.encode(new Uint8Array(wire.length + 1), x, given)).toThrow(sentence);
      expect(() => codec.encode(wire, new Float64Array(n) as unknown as Float32Array, given)).toThrow(
        "x must be a Float32Array",
      );
      expect(() => codec.encode(wire, { pointer: 0n, length: n, dtype: "f16", device: "cpu" }, given)).toThrow(
        "x is f16 on cpu",
      );
      expect(() => codec.encodeWithFeedback(wire, x, new Float32Array(n - 1), given)).toThrow(
        `error has ${n - 1} floats`,
      );
      for (const decay of [0, -0.5, 1.5, Number.NaN, "1" as never]) {
        const sentence = `decay is ${decay}, and must be a number, more than 0 and at most 1`;
        expect(() => codec.encodeWithFeedback(wire, x, new Float32Array(n), { ...given, decay })).toThrow(sentence);
        expect(() => codec.encodeSumWithFeedback(wire, [], new Float32Array(n), { ...given, decay })).toThrow(sentence);
      }
      expect(() => codec.encodeSumWithFeedback(wire, [wire], x, given)).toThrow("wire overlaps wires[0]");
      expect(() => codec.encodeSumWithFeedback(wire, [short.slice()], x, given)).toThrow(/wires\[0\] has \d+ bytes/);
      expect(() => codec.decodeAdd(x, short)).toThrow(/wire has \d+ bytes/);
      expect(() => codec.decodeAdd(x, wire, { scale: Number.NaN })).toThrow("scale is NaN");
      expect(() => codec.decodeAdd(x, wire, { scale: null as never })).toThrow("scale is null");
      expect(() => codec.scales(x, new Float64Array(n) as never)).toThrow(TypeError);
      expect(() => codec.decodeAdd(x, wire, 0.5 as never)).toThrow(/decodeAdd: options are an object.* this is 0\.5/);
      expect(() => codec.decode(x, wire, { factor: 2 } as never)).toThrow("decode: there is no option factor");
      const other = { ...given, Seed: 1 } as never;
      expect(() => codec.encode(wire, x, other)).toThrow("encode: there is no option Seed (known: zero");
      expect(() => codec.encode(wire, x, { ...given, decay: 0.5 })).toThrow("encode: there is no option decay");
      expect(() => codec.encodeWithFeedback(wire, x, new Float32Array(n), other)).toThrow("there is no option Seed");
      expect(() => codec.encodeSumWithFeedback(wire, [], new Float32Array(n), other)).toThrow("no option Seed");

      const mask = new Uint8Array(Math.ceil(n / 8) + 1);
      const masked = () => codec.encode(wire, x, { ...given, hold: mask });
      expect(masked).toThrow(takes.hold ? `hold has ${mask.length} bytes` : "takes no mask");
      expect(() => codec.decodeAdd(x, wire, { hold: mask })).toThrow(takes.hold ? "hold has" : "takes no mask");
      if (takes.zero) {
        expect(() => codec.encode(wire, x, { ...given, zero: "alternate" as "plus" })).toThrow("signAt");
        expect(() => codec.encode(wire, x, { ...given, zero: undefined })).toThrow("zero is undefined");
      }
      if (takes.random) {
        expect(() => codec.encode(wire, x, { ...given, seed: undefined })).toThrow("seed is undefined");
        expect(() => codec.encode(wire, x, { ...given, step: -1 })).toThrow("step is -1");
        expect(() => codec.encode(wire, x, { ...given, index: 63 })).toThrow("index is 63");
      }
    });
  });
}

/** Options of `encode` that the definition takes, each kind in its turn. */
function callsFor({ takes }: Definition): (n: number) => EncodeCall {
  return (n) => ({
    ...(takes.zero && { zero: n % 2 === 0 ? "plus" : "minus" }),
    ...(takes.hold && n % 3 === 0 && { hold: anyBytes(Math.ceil(n / 8), n + 3) }),
    ...(takes.random && { seed: 2 ** 40 + n, step: n, index: 64 * (n % 5) }),
  });
}

/** Floats and wire inside larger buffers, at odd offsets, with sentinels around. */
function room(kernel: CodecKernel, x: Float32Array, parameters: Parameters) {
  const length = kernel.wireBytes(x.length, parameters);
  const floats = new Float32Array(x.length + 6).fill(-77.5);
  const bytes = new Uint8Array(length + 8).fill(0xa5);
  floats.set(x, 3);
  return {
    x: floats.subarray(3, 3 + x.length),
    wire: bytes.subarray(5, 5 + length),
    everything: () => Buffer.concat([Buffer.from(floats.buffer), bytes]),
  };
}

const bits = (x: Float32Array): number[] => [...new Uint32Array(x.buffer, x.byteOffset, x.length)];
