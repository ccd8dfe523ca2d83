/** Checks of the tensors that a caller gives to be written: a program in JavaScript, or a cast, may give anything. */
import { CheckpointError } from "./checkpoint-error.ts";
import { type DType, dtypes, elements } from "./dtypes.ts";

/** Pairs of a name and a tensor, as an iterable. Throws `CheckpointError` for anything else, such as a plain object. */
export function pairsOf<T extends Iterable<readonly [string, unknown]>>(doing: string, pairs: T): T {
  const isIterable = typeof pairs === "object" && pairs !== null && Symbol.iterator in pairs;
  if (isIterable && !ArrayBuffer.isView(pairs)) return pairs;
  throw new CheckpointError(
    `${doing}: tensors are given as pairs of a name and a tensor; give model.stateDict(), a Map, or Object.entries({ name: tensor }).`,
  );
}

/** Refuses what is no tensor to write. `wrong` makes the error, from words that follow the tensor's name. */
export function checkTensor(name: unknown, tensor: unknown, wrong: (what: string) => CheckpointError): void {
  if (typeof name !== "string") throw wrong("has a name that is no string; give it one");
  if (!isWellFormed(name)) throw wrong("has half of a surrogate pair in its name, which no reader takes; rename it");
  const { dtype, shape, data } = (tensor ?? {}) as { dtype?: unknown; shape?: unknown; data?: unknown };
  if (typeof tensor !== "object" || tensor === null || ArrayBuffer.isView(tensor) || Array.isArray(tensor))
    throw wrong("is no tensor; give a Tensor, or { dtype, shape, data }");
  if (!dtypes.includes(dtype as DType))
    throw wrong(`has the dtype ${String(dtype)}, which the format does not have; convert it, for example to f32`);
  if (!Array.isArray(shape)) throw wrong("has no shape; give an array with the size of each dimension");
  if ("parts" in tensor || "toTypedArray" in tensor) return;
  checkPart(dtype as DType, data, wrong);
}

/**
 * Refuses elements in the array of another dtype, whose bytes would be read as other numbers. A Uint8Array and a
 * DataView are bytes of any dtype.
 */
export function checkPart(
  dtype: DType,
  part: unknown,
  wrong: (what: string) => CheckpointError,
): asserts part is ArrayBufferView {
  const own = kindOf(elements[dtype].array(new ArrayBuffer(0)));
  if (!ArrayBuffer.isView(part)) throw wrong(`is ${dtype}, and its data is no typed array; give ${named(own)}`);
  const kind = kindOf(part);
  if (![own, "Uint8Array", "DataView", ...(sameBits[dtype] ?? [])].includes(kind))
    throw wrong(`is ${dtype}, and its data is ${named(kind)}; convert it to ${named(own)}, or give its own dtype`);
  if ((part.buffer as { readonly detached?: boolean }).detached)
    throw wrong("has lost its memory: its buffer was transferred; give a new array");
  if (dtype !== "bool") return;
  const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  const wrongBool = bytes.findIndex((byte) => byte > 1);
  if (wrongBool >= 0) throw wrong(`is bool, and has a ${bytes[wrongBool]}; give 0 and 1 alone`);
}

/** Other arrays whose bytes are those of the dtype. */
const sameBits: { readonly [Each in DType]?: readonly string[] } = {
  f16: ["Float16Array"],
  u8: ["Uint8ClampedArray"],
  bool: ["Uint8ClampedArray"],
};

// Not by instanceof: an array may come from another realm, such as a context of node:vm.
const kindOf = (view: ArrayBufferView): string =>
  (view as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag];

const named = (kind: string): string => `${kind.startsWith("I") ? "an" : "a"} ${kind}`;

const isWellFormed = (text: string): boolean => Buffer.from(text).toString() === text;
