import type { DType, TypedArray } from "@terse/native-tensor";

/** The array of a dtype's elements. bf16 and f16 are stored as their 16 bits, bool as 0 and 1. */
const arrays: Readonly<Record<DType, new (length: number) => TypedArray>> = {
  f32: Float32Array,
  f64: Float64Array,
  i64: BigInt64Array,
  i32: Int32Array,
  i16: Int16Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
  f16: Uint16Array,
  bf16: Uint16Array,
};

/** A new array for `length` elements of a dtype. */
export function typedArrayFor(dtype: DType, length: number): TypedArray {
  const Elements = arrays[dtype];
  if (Elements === undefined)
    throw new TypeError(`there is no typed array for a tensor of dtype ${dtype}; convert it first: to("f32")`);
  return new Elements(length);
}

/** The dtype of a typed array's elements. A Uint16Array has the bits of bf16 or f16, so it needs `wanted`. */
export function dtypeOf(array: TypedArray, wanted?: DType): DType {
  const possible = (Object.keys(arrays) as DType[]).filter((dtype) => array instanceof arrays[dtype]);
  const found = possible.find((dtype) => dtype === wanted) ?? possible[0];
  if (found !== undefined && (found === wanted || !(array instanceof Uint16Array))) return found;
  throw new TypeError(
    array instanceof Uint16Array
      ? 'a Uint16Array has the bits of 16-bit floats; give { dtype: "bf16" } or { dtype: "f16" }'
      : `a tensor cannot be made from ${(array as object)?.constructor?.name ?? typeof array}; use Float32Array, Float64Array, BigInt64Array, Int32Array, Int16Array, Int8Array, Uint8Array or Uint16Array`,
  );
}
