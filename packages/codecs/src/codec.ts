import { type CodecKernel, type Floats, NotFiniteError, codecs as nativeCodecs, type Sign } from "@terse/native-codecs";
import { choose, implementations } from "./implementation.ts";

/** How a vector of floats is written on a wire. Wires are little-endian, least significant bit first, pad bits 0. */
export interface Codec {
  readonly name: string;
  /** The implementation that runs: "avx2", "scalar", "typescript", … All write the same bytes. */
  readonly implementation: string;
  /** Bytes for n floats. */
  wireBytes(n: number): number;
  /**
   * Writes x (n floats) to `wire`, which holds exactly wireBytes(n) bytes. `zero`: the sign of an exact zero, −0.0 included.
   * `hold`: ceil(n/8) bytes, bit 1 = this lane says nothing and is written as 0; a mask must be the same on every rank.
   * NaN or an infinity anywhere in x, held or not: NotFiniteError with the first one's index, and `wire` is undefined.
   */
  encode(wire: Uint8Array, x: Floats, options: EncodeOptions): void;
  /** sum += scale · decode(wire), in fp32; held lanes keep their value. `scale` is 1 unless given. */
  decodeAdd(sum: Floats, wire: Uint8Array, options?: DecodeOptions): void;
}

export interface EncodeOptions {
  zero: Sign;
  hold?: Uint8Array | undefined;
}

export interface DecodeOptions {
  scale?: number | undefined;
  hold?: Uint8Array | undefined;
}

/** A codec as people call it: its arguments checked, its best implementation run. `definition` is the TypeScript one. */
export function codec(definition: CodecKernel): Codec {
  let chosen: CodecKernel | undefined;
  const kernel = (): CodecKernel => {
    chosen ??= choose(implementations(definition, nativeCodecs));
    return chosen;
  };
  const { name, wireBytes } = definition;
  return {
    name,
    get implementation() {
      return kernel().implementation;
    },
    wireBytes,

    encode(wire, x, { zero, hold }) {
      const where = `${name}.encode`;
      checkFloats(where, "x", x);
      checkBytes(where, "wire", wire, wireBytes(x.length), `${x.length} floats`);
      checkHold(where, hold, x.length);
      if (zero !== "plus" && zero !== "minus") {
        throw new TypeError(
          `${where}: zero is ${String(zero)}, and must be "plus" or "minus"; for "alternate" use signAt(policy, step), for "hold" a mask.`,
        );
      }
      const accepted = kernel().encode(wire, x, { zero, hold });
      if (accepted < x.length)
        throw new NotFiniteError(`${where}: x`, accepted, x instanceof Float32Array ? x[accepted] : undefined);
    },

    decodeAdd(sum, wire, { scale = 1, hold } = {}) {
      const where = `${name}.decodeAdd`;
      checkFloats(where, "sum", sum);
      checkBytes(where, "wire", wire, wireBytes(sum.length), `${sum.length} floats`);
      checkHold(where, hold, sum.length);
      if (!Number.isFinite(Math.fround(scale)))
        throw new RangeError(`${where}: scale is ${scale}, and must be finite in fp32.`);
      kernel().decodeAdd(sum, wire, { scale, hold });
    },
  };
}

/** Floats as the TypeScript definitions read them: they cannot follow a pointer. */
export function floats(x: Floats): Float32Array {
  if (x instanceof Float32Array) return x;
  throw new TypeError(
    "the TypeScript implementation reads Float32Array only, not memory behind a pointer: build the native addon with `./terse setup`, or copy to a Float32Array.",
  );
}

export function checkBytes(where: string, what: string, bytes: Uint8Array, expected: number, holds: string): void {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${where}: ${what} must be a Uint8Array.`);
  if (bytes.length !== expected) {
    throw new RangeError(
      `${where}: ${what} has ${bytes.length} bytes, and ${holds} take ${expected}; pass a view of exactly that many.`,
    );
  }
}

function checkFloats(where: string, what: string, x: Floats): void {
  if (x instanceof Float32Array) return;
  if (typeof x?.pointer !== "bigint")
    throw new TypeError(`${where}: ${what} must be a Float32Array, or memory with pointer, length, dtype and device.`);
  if (x.dtype !== "f32" || x.device !== "cpu")
    throw new TypeError(`${where}: ${what} is ${x.dtype} on ${x.device}, and must be f32 on cpu.`);
}

function checkHold(where: string, hold: Uint8Array | undefined, n: number): void {
  if (hold !== undefined) checkBytes(where, "hold", hold, Math.ceil(n / 8), `${n} lanes`);
}
