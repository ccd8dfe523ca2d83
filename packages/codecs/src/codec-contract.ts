/** What every codec must do, whoever implements it. A codec's own test calls this with its definition and its vectors. */
import { spawnSync } from "node:child_process";
import { type CodecKernel, NotFiniteError, codecs as nativeCodecs, type Sign } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import type { Codec } from "./codec.ts";
import { implementations } from "./implementation.ts";

/** Inputs and exact outputs from outside this repository, as `vectors.py` writes them. Packed bytes are hexadecimal. */
export interface Vectors {
  cases: { name: string; x: number[]; zero: string; hold?: string; wire: string; scale: number; sum: number[] }[];
}

export interface CodecUnderTest {
  codec: Codec;
  definition: CodecKernel;
  vectors: Vectors;
}

const lengths = [...Array.from({ length: 71 }, (_, n) => n), 1021, 8269]; // 0…70, a prime, and a prime beyond two groups of pages
const zeros: Sign[] = ["plus", "minus"];

export function codecContract({ codec, definition, vectors }: CodecUnderTest): void {
  const { kernels, missing } = implementations(definition, nativeCodecs);

  it.skipIf(missing)(`runs natively here${missing ? ` (skipped: ${missing})` : ""}`, () => {
    expect(kernels.map((k) => k.implementation)).toContain("scalar");
  });

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))("$by", ({ kernel }) => {
    it.each(vectors.cases)(
      "writes and reads the golden bytes: $name, zero $zero",
      ({ x, zero, hold, wire, scale, sum }) => {
        const mask = hold === undefined ? undefined : fromHex(hold);
        const bytes = new Uint8Array(kernel.wireBytes(x.length));
        expect(kernel.encode(bytes, new Float32Array(x), { zero: zero as Sign, hold: mask })).toBe(x.length);
        expect(toHex(bytes)).toBe(wire);
        const sums = new Float32Array(x);
        kernel.decodeAdd(sums, bytes, { scale, hold: mask });
        expect(bits(sums)).toEqual(bits(new Float32Array(sum)));
      },
    );

    it("gives what the definition gives, for every length, at odd offsets, and touches nothing outside", () => {
      for (const n of lengths) {
        for (const zero of zeros) {
          for (const masked of [false, true]) {
            const x = anyFloats(n, 7 * n + 1);
            const hold = masked ? anyBytes(Math.ceil(n / 8), n + 3) : undefined;
            const mine = room(kernel, x);
            const expected = room(definition, x);
            expect(kernel.encode(mine.wire, mine.x, { zero, hold })).toBe(n);
            definition.encode(expected.wire, expected.x, { zero, hold });
            kernel.decodeAdd(mine.x, mine.wire, { scale: 0.3, hold });
            definition.decodeAdd(expected.x, expected.wire, { scale: 0.3, hold });
            const same = mine.everything().equals(expected.everything());
            expect(same, `n = ${n}, zero ${zero}, ${masked ? "with" : "without"} a mask`).toBe(true);
          }
        }
      }
    });

    it("leaves pad bits 0", () => {
      for (const n of lengths.filter((length) => length % 8)) {
        const wire = new Uint8Array(kernel.wireBytes(n)).fill(0xff);
        kernel.encode(wire, new Float32Array(n).fill(1), { zero: "plus" });
        expect(wire.at(-1)! >> (n % 8)).toBe(0);
      }
    });

    it("names the first NaN or infinity", () => {
      for (const n of [1, 8, 63, 64, 65, 200, 8269]) {
        for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
          for (const first of [0, n >> 1, n - 1]) {
            const x = anyFloats(n, n);
            x[n - 1] = Number.NaN;
            x[first] = bad;
            expect(kernel.encode(new Uint8Array(kernel.wireBytes(n)), x, { zero: "plus" })).toBe(first);
          }
        }
      }
    });
  });

  describe("as people call it", () => {
    it("decodes what it encoded", () => {
      const x = anyFloats(1021, 5).filter((value) => value !== 0);
      const wire = new Uint8Array(codec.wireBytes(x.length));
      codec.encode(wire, x, { zero: "plus" });
      const sum = new Float32Array(x.length);
      codec.decodeAdd(sum, wire);
      expect([...sum]).toEqual([...x].map(Math.sign));
    });

    it("refuses what is not finite, with the index", () => {
      const x = new Float32Array([1, 2, Number.NaN, Number.NaN]);
      const encode = () => codec.encode(new Uint8Array(1), x, { zero: "plus" });
      expect(encode).toThrow(NotFiniteError);
      expect(encode).toThrow(`${codec.name}.encode: x[2] is NaN`);
    });

    it("refuses wrong lengths, types and options in one sentence each", () => {
      const x = new Float32Array(20);
      const wire = new Uint8Array(codec.wireBytes(20));
      expect(() => codec.encode(wire.subarray(1), x, { zero: "plus" })).toThrow(
        /wire has \d+ bytes, and 20 floats take/,
      );
      expect(() => codec.encode(new Uint8Array(wire.length + 1), x, { zero: "plus" })).toThrow(
        /wire has \d+ bytes, and 20 floats take/,
      );
      expect(() => codec.encode(wire, x, { zero: "plus", hold: new Uint8Array(2) })).toThrow(
        "hold has 2 bytes, and 20 lanes take 3",
      );
      expect(() => codec.encode(wire, x, { zero: "alternate" as Sign })).toThrow("signAt");
      expect(() => codec.encode(wire, new Float64Array(20) as unknown as Float32Array, { zero: "plus" })).toThrow(
        "x must be a Float32Array",
      );
      expect(() =>
        codec.encode(wire, { pointer: 0n, length: 20, dtype: "f16", device: "cpu" }, { zero: "plus" }),
      ).toThrow("x is f16 on cpu");
      expect(() => codec.decodeAdd(x, wire.subarray(1))).toThrow(/wire has \d+ bytes/);
      expect(() => codec.decodeAdd(x, wire, { hold: new Uint8Array(4) })).toThrow("hold has 4 bytes");
      expect(() => codec.decodeAdd(x, wire, { scale: Number.NaN })).toThrow("scale is NaN");
    });
  });
}

/** The answer of `vectors.py --live`, or why it cannot be asked. */
export function askNumpy(requests: readonly object[]): unknown[] {
  const { stdout, stderr, status } = spawnSync(python!, [`${import.meta.dirname}/../vectors.py`, "--live"], {
    input: requests.map((request) => JSON.stringify(request)).join("\n"),
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${python} vectors.py --live: ${stderr}`);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A Python with numpy, for comparisons with fresh inputs. */
export const python = process.env["TERSE_PYTHON"];
export const needsPython = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with numpy)";

/** Floats and wire inside larger buffers, at odd offsets, with sentinels around. */
function room(kernel: CodecKernel, x: Float32Array) {
  const floats = new Float32Array(x.length + 6).fill(-77.5);
  const bytes = new Uint8Array(kernel.wireBytes(x.length) + 8).fill(0xa5);
  floats.set(x, 3);
  return {
    x: floats.subarray(3, 3 + x.length),
    wire: bytes.subarray(5, 5 + kernel.wireBytes(x.length)),
    everything: () => Buffer.concat([Buffer.from(floats.buffer), bytes]),
  };
}

/** Numbers of every kind that is finite: normal ones, zeros of both signs, denormals, the largest. The same for one seed. */
export function anyFloats(n: number, seed: number): Float32Array {
  const next = random(seed);
  const special = [0, -0, 2 ** -149, -(2 ** -149), 2 ** -127, 3.4028234663852886e38, -3.4028234663852886e38];
  return Float32Array.from({ length: n }, () =>
    next() < 0.3 ? special[Math.floor(next() * special.length)]! : next() * 4 - 2,
  );
}

export function anyBytes(n: number, seed: number): Uint8Array {
  const next = random(seed);
  return Uint8Array.from({ length: n }, () => Math.floor(next() * 256));
}

/** Uniform in [0, 1), the same sequence for one seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const bits = (x: Float32Array): number[] => [...new Uint32Array(x.buffer, x.byteOffset, x.length)];
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const fromHex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"));
