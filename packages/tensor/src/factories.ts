/** Functions that create tensors. The defaults are f32 (arange, randint and randperm: i64) on the CPU. */
import { checkOptions, type DType, native, type TypedArray } from "@terse/native-tensor";
import { type Argument, call } from "./call.ts";
import { dtypeOf } from "./dtype.ts";
import { scope } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

/** The dtype, the device and the gradient of a new tensor. */
export interface TensorOptions {
  dtype?: DType;
  device?: string; // "cpu", "cuda:0"
  requiresGrad?: boolean;
}

function checked(options: TensorOptions): TensorOptions {
  checkOptions("a new tensor", options, ["dtype", "device", "requiresGrad"] satisfies (keyof TensorOptions)[]);
  return options;
}

/** The sizes of a tensor's dimensions. */
export type Shape = readonly number[];

let standardDevice = "cpu";

/**
 * Runs `work`; new tensors in it are on this device unless they name one, as in `with torch.device(device)`. On "meta"
 * they have shapes and no memory. What `work` does after an await is not affected. Tensors from typed arrays stay on
 * the CPU.
 */
export function withDevice<T>(device: string, work: () => T): T {
  const before = standardDevice;
  standardDevice = device;
  try {
    return work();
  } finally {
    standardDevice = before;
  }
}

function make(operator: string, values: Argument[], options: TensorOptions): Tensor {
  const { dtype = "f32", device = standardDevice, requiresGrad = false } = checked(options);
  const tensor: Tensor = call(operator, ...values, dtype, undefined, device);
  if (requiresGrad) tensor.requiresGrad = true;
  return tensor;
}

function makeLike(operator: string, like: Tensor, options: TensorOptions): Tensor {
  const { dtype, device, requiresGrad = false } = checked(options);
  const tensor: Tensor = call(operator, like, dtype, undefined, device);
  if (requiresGrad) tensor.requiresGrad = true;
  return tensor;
}

export const zeros = (shape: Shape, options: TensorOptions = {}): Tensor => make("aten::zeros", [shape], options);
export const ones = (shape: Shape, options: TensorOptions = {}): Tensor => make("aten::ones", [shape], options);
export const full = (shape: Shape, value: number, options: TensorOptions = {}): Tensor =>
  make("aten::full", [shape, value], options);
/** A tensor whose memory is not initialised. */
export const empty = (shape: Shape, options: TensorOptions = {}): Tensor =>
  make("aten::empty.memory_format", [shape], options);
/** Random numbers from the standard normal distribution. */
export const randn = (shape: Shape, options: TensorOptions = {}): Tensor => make("aten::randn", [shape], options);
/** Random numbers, uniform in [0, 1). */
export const rand = (shape: Shape, options: TensorOptions = {}): Tensor => make("aten::rand", [shape], options);
/** Random integers in [low, high), i64 by default. */
export const randint = (low: number, high: number, shape: Shape, options: TensorOptions = {}): Tensor =>
  make("aten::randint.low", [low, high, shape], { dtype: "i64", ...checked(options) });
/** A random permutation of 0 … n − 1, i64 by default. */
export const randperm = (n: number, options: TensorOptions = {}): Tensor =>
  make("aten::randperm", [n], { dtype: "i64", ...checked(options) });
/** n values from start to end, inclusive. */
export const linspace = (start: number, end: number, n: number, options: TensorOptions = {}): Tensor =>
  make("aten::linspace", [start, end, n], options);
/** The identity matrix (n, n). */
export const eye = (n: number, options: TensorOptions = {}): Tensor => make("aten::eye", [n], options);

/** 0 … end − 1, or start, start + step, … below end. i64 if all three are integers, else f32. */
export function arange(end: number, options?: TensorOptions): Tensor;
export function arange(start: number, end: number, step?: number, options?: TensorOptions): Tensor;
export function arange(a: number, b?: number | TensorOptions, step = 1, more: TensorOptions = {}): Tensor {
  const [start, end, options] = typeof b === "number" ? [a, b, more] : [0, a, b ?? {}];
  const dtype = [start, end, step].every(Number.isInteger) ? "i64" : "f32";
  return make("aten::arange.start_step", [start, end, step], { dtype, ...checked(options) });
}

export const zerosLike = (tensor: Tensor, options: TensorOptions = {}): Tensor =>
  makeLike("aten::zeros_like", tensor, options);
export const onesLike = (tensor: Tensor, options: TensorOptions = {}): Tensor =>
  makeLike("aten::ones_like", tensor, options);
export const emptyLike = (tensor: Tensor, options: TensorOptions = {}): Tensor =>
  makeLike("aten::empty_like", tensor, options);

/**
 * A tensor with a copy of the array's elements, in this shape (default: one dimension), converted if `dtype` is not the
 * array's own. A Uint16Array has the bits of bf16 or f16 and needs `dtype`. A Uint8Array may have bools.
 */
export function fromTypedArray(array: TypedArray, shape?: Shape, options: TensorOptions = {}): Tensor {
  const { dtype, device, requiresGrad = false } = checked(options);
  const own = dtypeOf(array, dtype);
  return scope(() => {
    let tensor = new Tensor(native.fromBytes(array, own));
    if (shape !== undefined) tensor = call("aten::view", tensor, shape);
    if ((dtype !== undefined && dtype !== own) || device !== undefined)
      tensor = call("aten::to.dtype_layout", tensor, dtype, undefined, device);
    if (requiresGrad) tensor.requiresGrad = true;
    return tensor;
  });
}

/** A number or boolean, or nested arrays of them, as `tensor` takes. */
export type NestedValues = number | bigint | boolean | readonly NestedValues[];

/**
 * A tensor from a number or from nested arrays: `tensor([[1, 2], [3, 4]])`. f32 by default. Integer dtypes cut off
 * fractions, as in PyTorch. Throws RangeError for ragged arrays, and TypeError for a value that is no number, or that
 * does not fit an integer dtype.
 */
export function tensor(values: NestedValues, given: TensorOptions = {}): Tensor {
  const { dtype = "f32", ...options } = checked(given);
  const shape: number[] = [];
  for (let level: NestedValues = values; isList(level); level = level[0]!) {
    shape.push(level.length);
    if (level.length === 0) break;
  }
  const flat: (number | bigint)[] = [];
  const collect = (level: NestedValues, depth: number): void => {
    if (!isList(level)) {
      if (depth !== shape.length)
        throw new RangeError(
          `tensor: rows have different depths; give all the depth of the first, whose shape is [${shape.join(", ")}]`,
        );
      flat.push(element(level, dtype));
      return;
    }
    if (level.length !== shape[depth])
      throw new RangeError(
        `tensor: rows have different lengths; give all the length of the first, whose shape is [${shape.join(", ")}]`,
      );
    for (const inner of level) collect(inner, depth + 1);
  };
  collect(values, 0);
  if (dtype === "i64") return fromTypedArray(BigInt64Array.from(flat as bigint[]), shape, { dtype, ...options });
  return fromTypedArray(Float64Array.from(flat as number[]), shape, { dtype, ...options });
}

const isList = (level: NestedValues): level is readonly NestedValues[] =>
  Array.isArray(level) || (ArrayBuffer.isView(level) && Symbol.iterator in level); // not a DataView

const integerBits: Partial<Record<DType, [bits: number, signed: boolean]>> = {
  u8: [8, false],
  i8: [8, true],
  i16: [16, true],
  i32: [32, true],
  i64: [64, true],
};

/** One element as the array of `tensor` stores it: a bigint for i64, else a number. */
function element(value: number | bigint | boolean, dtype: DType): number | bigint {
  if (typeof value !== "number" && typeof value !== "bigint" && typeof value !== "boolean") {
    const got =
      typeof value === "string" ? JSON.stringify(value) : value === null ? "null" : `a value of type ${typeof value}`;
    throw new TypeError(
      `tensor: expected numbers, booleans or nested arrays of them, got ${got}; convert it first, as by Number()`,
    );
  }
  const [bits, signed] = integerBits[dtype] ?? [];
  if (bits === undefined) return Number(value);
  const least = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const most = least + 2n ** BigInt(bits) - 1n;
  const whole = typeof value === "bigint" ? value : Math.trunc(Number(value));
  if (!(Number.isNaN(whole) || whole < least || whole > most)) return dtype === "i64" ? BigInt(whole) : Number(whole);
  throw new TypeError(
    `tensor: ${value} does not fit ${dtype}, which has whole numbers from ${least} to ${most}; choose another dtype, or clamp the values`,
  );
}
