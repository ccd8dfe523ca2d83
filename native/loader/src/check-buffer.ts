import type { BufferLike, DType, TypedArray } from "./buffer-like.ts";

/** Bytes of one element. */
export const elementBytes: Readonly<Record<DType, number>> = {
  u8: 1,
  i8: 1,
  i16: 2,
  i32: 4,
  i64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  f64: 8,
  bool: 1,
};

const arrays: Readonly<Record<string, DType>> = {
  Uint8Array: "u8",
  Int8Array: "i8",
  Int16Array: "i16",
  Uint16Array: "i16",
  Int32Array: "i32",
  Uint32Array: "i32",
  BigInt64Array: "i64",
  BigUint64Array: "i64",
  Float32Array: "f32",
  Float64Array: "f64",
};

const mostBytes = 2 ** 48; // of one buffer; a process has no more addresses

/**
 * Checks one argument of a call: a typed array that still has its memory, or an object whose pointer, length, dtype and
 * device can be right. Returns its dtype; unsigned integers count as signed ones, except u8. Throws TypeError or
 * RangeError; `where` and `what` name the call and the argument: "allReduce", "the memory".
 */
export function checkBuffer(where: string, what: string, x: BufferLike): DType {
  const name = `${where}: ${what}`;
  if (ArrayBuffer.isView(x)) {
    const dtype = arrays[x[Symbol.toStringTag]];
    if (dtype === undefined)
      throw new TypeError(
        `${name} is a ${x[Symbol.toStringTag]}, which has no dtype; give one of ${Object.keys(arrays).join(", ")}`,
      );
    refuseGone(where, what, x);
    return dtype;
  }
  if (typeof x !== "object" || x === null || typeof x.pointer !== "bigint")
    throw new TypeError(`${name} must be a typed array, or an object with pointer, length, dtype and device`);
  const { pointer, length, dtype, device } = x;
  if (!Object.hasOwn(elementBytes, dtype))
    throw new TypeError(`${name}: unknown dtype ${dtype}; known: ${Object.keys(elementBytes).join(", ")}`);
  if (typeof device !== "string")
    throw new TypeError(`${name}.device is ${device}, and must be a string such as "cpu" or "cuda:0"`);
  const bytes = elementBytes[dtype];
  if (!Number.isSafeInteger(length) || length < 0 || length * bytes > mostBytes)
    throw new RangeError(
      `${name}.length is ${length}, and must be a whole number of elements that fit into memory, 0 or more`,
    );
  if (length > 0 && (pointer <= 0n || pointer + BigInt(length * bytes) > 2n ** 64n || pointer % BigInt(bytes) !== 0n))
    throw new RangeError(`${name}.pointer is ${pointer}, and must be an address that is a multiple of ${bytes}`);
  return dtype;
}

/** Refuses a view whose buffer was transferred or has shrunk: its length is 0, so it would look like an empty array. */
export function refuseGone(where: string, what: string, view: TypedArray): void {
  if (view.length > 0) return;
  try {
    view.keys(); // throws if the view is detached or out of bounds, and does nothing else
  } catch {
    throw new TypeError(
      `${where}: ${what} has lost its memory: its buffer was transferred, or has become too short; give a new array.`,
    );
  }
}
