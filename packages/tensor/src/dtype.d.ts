import type { DType, TypedArray } from "@terse/native-tensor";
/** A new array for `length` elements of a dtype. bf16 and f16 are stored as their 16 bits, bool as 0 and 1. */
export declare function typedArrayFor(dtype: DType, length: number): TypedArray;
/** The dtype of a typed array's elements. A Uint16Array has the bits of bf16 or f16, so it needs `wanted`. */
export declare function dtypeOf(array: TypedArray, wanted?: DType): DType;
