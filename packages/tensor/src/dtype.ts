import type { DType, TypedArray } from "@terse/native-tensor";

/** A new array for `length` elements of a dtype. bf16 and f16 are stored as their 16 bits, bool as 0 and 1. */
export function typedArrayFor(dtype: DType, length: number): TypedArray {
  switch (dtype) {
    case "f32":
      return new Float32Array(length);
    case "f64":
      return new Float64Array(length);
    case "i64":
      return new BigInt64Array(length);
    case "i32":
      return new Int32Array(length);
    case "i16":
      return new Int16Array(length);
    case "i8":
      return new Int8Array(length);
    case "u8":
    case "bool":
      return new Uint8Array(length);
    case "f16":
    case "bf16":
      return new Uint16Array(length);
    default:
      throw new TypeError(`there is no typed array for a tensor of dtype ${dtype}; convert it first: to("f32")`);
  }
}

/** The dtype of a typed array's elements. A Uint16Array has the bits of bf16 or f16, so it needs `wanted`. */
export function dtypeOf(array: TypedArray, wanted?: DType): DType {
  if (array instanceof Float32Array) return "f32";
  if (array instanceof Float64Array) return "f64";
  if (array instanceof BigInt64Array) return "i64";
  if (array instanceof Int32Array) return "i32";
  if (array instanceof Int16Array) return "i16";
  if (array instanceof Int8Array) return "i8";
  if (array instanceof Uint8Array) return wanted === "bool" ? "bool" : "u8";
  if (array instanceof Uint16Array && (wanted === "bf16" || wanted === "f16")) return wanted;
  throw new TypeError(
    array instanceof Uint16Array
      ? 'a Uint16Array has the bits of 16-bit floats; give { dtype: "bf16" } or { dtype: "f16" }'
      : `a tensor cannot be made from ${(array as object)?.constructor?.name ?? typeof array}; use Float32Array, Float64Array, BigInt64Array, Int32Array, Int16Array, Int8Array, Uint8Array or Uint16Array`,
  );
}
