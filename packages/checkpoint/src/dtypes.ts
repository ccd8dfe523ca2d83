/** The arrays in which elements are in memory; `elements` has the array of each dtype. */
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

interface Element {
  readonly onDisk: string;
  readonly bytes: number; // below 1 for those of 4 and 6 bits, which are packed
  readonly array: (buffer: ArrayBuffer) => TypedArray;
}

const bits = (buffer: ArrayBuffer) => new Uint8Array(buffer);

/**
 * All types of the format, in the order in which a file has its tensors. Writers put large elements first, so that
 * every tensor starts at a multiple of its element size. Floats of 16 bits and less are read as bits, because not every
 * Node has typed arrays for them. c64 has the real and the imaginary part of each element.
 */
export const elements = {
  u64: { onDisk: "U64", bytes: 8, array: (buffer) => new BigUint64Array(buffer) },
  i64: { onDisk: "I64", bytes: 8, array: (buffer) => new BigInt64Array(buffer) },
  f64: { onDisk: "F64", bytes: 8, array: (buffer) => new Float64Array(buffer) },
  c64: { onDisk: "C64", bytes: 8, array: (buffer) => new Float32Array(buffer) },
  f32: { onDisk: "F32", bytes: 4, array: (buffer) => new Float32Array(buffer) },
  u32: { onDisk: "U32", bytes: 4, array: (buffer) => new Uint32Array(buffer) },
  i32: { onDisk: "I32", bytes: 4, array: (buffer) => new Int32Array(buffer) },
  bf16: { onDisk: "BF16", bytes: 2, array: (buffer) => new Uint16Array(buffer) },
  f16: { onDisk: "F16", bytes: 2, array: (buffer) => new Uint16Array(buffer) },
  u16: { onDisk: "U16", bytes: 2, array: (buffer) => new Uint16Array(buffer) },
  i16: { onDisk: "I16", bytes: 2, array: (buffer) => new Int16Array(buffer) },
  f8_e5m2fnuz: { onDisk: "F8_E5M2FNUZ", bytes: 1, array: bits },
  f8_e4m3fnuz: { onDisk: "F8_E4M3FNUZ", bytes: 1, array: bits },
  f8_e8m0: { onDisk: "F8_E8M0", bytes: 1, array: bits },
  f8_e4m3: { onDisk: "F8_E4M3", bytes: 1, array: bits },
  f8_e5m2: { onDisk: "F8_E5M2", bytes: 1, array: bits },
  i8: { onDisk: "I8", bytes: 1, array: (buffer) => new Int8Array(buffer) },
  u8: { onDisk: "U8", bytes: 1, array: bits },
  f6_e3m2: { onDisk: "F6_E3M2", bytes: 0.75, array: bits },
  f6_e2m3: { onDisk: "F6_E2M3", bytes: 0.75, array: bits },
  f4: { onDisk: "F4", bytes: 0.5, array: bits },
  bool: { onDisk: "BOOL", bytes: 1, array: bits },
} satisfies Readonly<Record<string, Element>>;

/** Element types on disk and in memory. Some of them libtorch computes little or nothing with: u16, c64, f4, … */
export type DType = keyof typeof elements;
export type Float8DType = Extract<DType, `f8_${string}`>;

export const dtypes = Object.keys(elements) as readonly DType[];

/** The dtype whose name on disk is `name`, such as "F32". */
export const dtypeFromDisk = (name: unknown): DType | undefined =>
  dtypes.find((dtype) => elements[dtype].onDisk === name);

/** Number of elements of a shape. NaN if a dimension is no non-negative integer, or if the product exceeds 2⁵³ − 1. */
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
export const showShape = (shape: readonly number[]) =>
  `(${shape.length > 8 ? `${shape.slice(0, 8).join(", ")}, …` : shape.join(", ")})`;
