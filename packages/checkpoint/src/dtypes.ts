/** Element types on disk and in memory. */
export type DType = "u8" | "i8" | "i16" | "i32" | "i64" | "f16" | "bf16" | "f32" | "f64" | "bool";

export type TypedArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

interface Element {
  readonly onDisk: string;
  readonly bytes: number;
  readonly array: (buffer: ArrayBuffer) => TypedArray;
}

/**
 * In the order of tensors in a safetensors file. Its writer puts large elements first, so that every tensor starts at a multiple of its
 * element size. bf16 and f16 are read as bits, because not every Node has typed arrays for them.
 */
export const elements: Readonly<Record<DType, Element>> = {
  i64: { onDisk: "I64", bytes: 8, array: (buffer) => new BigInt64Array(buffer) },
  f64: { onDisk: "F64", bytes: 8, array: (buffer) => new Float64Array(buffer) },
  f32: { onDisk: "F32", bytes: 4, array: (buffer) => new Float32Array(buffer) },
  i32: { onDisk: "I32", bytes: 4, array: (buffer) => new Int32Array(buffer) },
  bf16: { onDisk: "BF16", bytes: 2, array: (buffer) => new Uint16Array(buffer) },
  f16: { onDisk: "F16", bytes: 2, array: (buffer) => new Uint16Array(buffer) },
  i16: { onDisk: "I16", bytes: 2, array: (buffer) => new Int16Array(buffer) },
  i8: { onDisk: "I8", bytes: 1, array: (buffer) => new Int8Array(buffer) },
  u8: { onDisk: "U8", bytes: 1, array: (buffer) => new Uint8Array(buffer) },
  bool: { onDisk: "BOOL", bytes: 1, array: (buffer) => new Uint8Array(buffer) },
};

export const dtypes = Object.keys(elements) as readonly DType[];

/** The dtype whose name on disk is `name`, such as "F32". */
export const dtypeFromDisk = (name: unknown): DType | undefined =>
  dtypes.find((dtype) => elements[dtype].onDisk === name);

/** Number of elements of a shape. NaN if a dimension is not a non-negative integer, or if the product is above 2⁵³ − 1. */
export function elementCount(shape: readonly unknown[]): number {
  if (!shape.every((n): n is number => Number.isSafeInteger(n) && (n as number) >= 0)) return Number.NaN;
  if (shape.includes(0)) return 0;
  let count = 1;
  for (const n of shape) {
    count *= n;
    if (!Number.isSafeInteger(count)) return Number.NaN;
  }
  return count;
}

/** "(3, 4)" */
export const showShape = (shape: readonly number[]) => `(${shape.join(", ")})`;
