/**
 * Floats of 8 bits as f32, which can represent all their values. Micikevicius et al. 2022, Table 1 (E4M3, E5M2); the
 * OCP Microscaling Formats 1.0, §5.4 (E8M0); FNUZ has no infinities, and NaN in place of −0.
 */
import type { DType, Float8DType } from "./dtypes.ts";

interface Format {
  readonly fraction: number; // bits
  readonly bias: number;
  readonly special: (code: number) => number | undefined; // NaN and infinities
}

const formats: Readonly<Record<Exclude<Float8DType, "f8_e8m0">, Format>> = {
  f8_e4m3: { fraction: 3, bias: 7, special: (code) => ((code & 0x7f) === 0x7f ? Number.NaN : undefined) },
  f8_e5m2: {
    fraction: 2,
    bias: 15,
    special(code) {
      if ((code & 0x7c) !== 0x7c) return undefined;
      return code & 3 ? Number.NaN : code & 0x80 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    },
  },
  f8_e4m3fnuz: { fraction: 3, bias: 8, special: (code) => (code === 0x80 ? Number.NaN : undefined) },
  f8_e5m2fnuz: { fraction: 2, bias: 16, special: (code) => (code === 0x80 ? Number.NaN : undefined) },
};

export const isFloat8 = (dtype: DType): dtype is Float8DType => dtype.startsWith("f8_");

/** The values of `codes`. */
export function float8ToFloat32(dtype: Float8DType, codes: Uint8Array): Float32Array {
  const values = Float32Array.from({ length: 256 }, (_, code) => decoded(dtype, code));
  return Float32Array.from(codes, (code) => values[code]!);
}

function decoded(dtype: Float8DType, code: number): number {
  if (dtype === "f8_e8m0") return code === 0xff ? Number.NaN : 2 ** (code - 127); // an exponent alone
  const { fraction, bias, special } = formats[dtype];
  const named = special(code);
  if (named !== undefined) return named;
  const exponent = (code & 0x7f) >> fraction;
  const tail = (code & ((1 << fraction) - 1)) / (1 << fraction);
  const size = exponent === 0 ? tail * 2 ** (1 - bias) : (1 + tail) * 2 ** (exponent - bias);
  return code & 0x80 ? -size : size;
}
