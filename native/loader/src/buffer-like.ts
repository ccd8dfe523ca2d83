/** Element types that cross the native line. Names are ours; `bf16` and `f16` have no typed array in every Node. */
export type DType = "u8" | "i8" | "i16" | "i32" | "i64" | "f16" | "bf16" | "f32" | "f64" | "bool";

export type TypedArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

/**
 * Memory that is not a typed array: a tensor, or any framework's buffer. The pointer must stay valid for the whole call,
 * and for an asynchronous call until its promise settles. A wrong pointer crashes the process, as in C.
 */
export interface NativeBuffer {
  readonly pointer: bigint; // address of the first element
  readonly length: number; // elements, contiguous
  readonly dtype: DType;
  readonly device: string; // "cpu", "cuda:0"
  /** Handle of the CUDA stream whose work makes the contents; without it the default stream. */
  readonly stream?: bigint;
}

/** What kernels, codecs and collectives read and write. */
export type BufferLike = TypedArray | NativeBuffer;
