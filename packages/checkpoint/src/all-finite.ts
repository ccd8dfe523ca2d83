import type { DType } from "./dtypes.ts";
import { float8ToFloat32, isFloat8 } from "./float8.ts";

/** Whether no element is NaN or infinite. Floats of 16 bits and less are their bits. Integers are always finite. */
export function allFinite(dtype: DType, data: ArrayBufferView): boolean {
  if (isFloat8(dtype)) return every(float8ToFloat32(dtype, data as Uint8Array));
  if (dtype === "f32" || dtype === "f64" || dtype === "c64") return every(data as Float32Array | Float64Array);
  if (dtype !== "f16" && dtype !== "bf16") return true;
  const exponent = dtype === "f16" ? 0x7c00 : 0x7f80; // all ones: NaN or infinite
  return !(data as Uint16Array).some((bits) => (bits & exponent) === exponent);
}

function every(values: Float32Array | Float64Array): boolean {
  let sum = 0; // 0 · x is NaN for NaN and ∞ alone; a sum without a branch runs at the speed of memory
  for (let i = 0; i < values.length; i++) sum += 0 * values[i]!;
  return sum === 0;
}
