/**
 * Element types of buffers that native code reads and writes. Only newer versions of Node have a typed array for `f16`;
 * none has one for `bf16`.
 */
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
 * Contiguous memory that is not a typed array: a tensor, or a buffer of another framework. The pointer must stay valid
 * until the call returns; for an asynchronous call until its promise settles, unless `retain` sees to that. A wrong
 * pointer crashes the process, as in C.
 */
export interface NativeBuffer {
  readonly pointer: bigint; // address of the first element
  readonly length: number; // elements
  readonly dtype: DType;
  readonly device: string; // "cpu", "cuda:0"
  /** Handle of the CUDA stream that writes the contents; the default stream if absent. */
  readonly stream?: bigint;
  /**
   * Keeps the memory at its address until `release` is called, whatever becomes of this object. Asynchronous calls use
   * it.
   */
  retain?(): RetainedBuffer;
}

/** Memory that nothing frees or moves before `release`. */
export interface RetainedBuffer extends NativeBuffer {
  release(): void;
}

/** What kernels, codecs and collectives read and write. */
export type BufferLike = TypedArray | NativeBuffer;
