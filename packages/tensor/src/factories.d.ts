/** Functions that create tensors. The defaults are f32 (arange, randint and randperm: i64) on the CPU. */
import { type DType, type TypedArray } from "@terse/native-tensor";
import { Tensor } from "./tensor.ts";
export interface TensorOptions {
    dtype?: DType;
    device?: string;
    requiresGrad?: boolean;
}
export type Shape = readonly number[];
/**
 * Runs `work`, in which new tensors without a device of their own are on this one, as in `with torch.device(device)`. On "meta" they have
 * shapes and no memory. What `work` does later, after an await, is not affected. Tensors from typed arrays stay on the CPU.
 */
export declare function withDevice<T>(device: string, work: () => T): T;
export declare const zeros: (shape: Shape, options?: TensorOptions) => Tensor;
export declare const ones: (shape: Shape, options?: TensorOptions) => Tensor;
export declare const full: (shape: Shape, value: number, options?: TensorOptions) => Tensor;
/** Not initialised. */
export declare const empty: (shape: Shape, options?: TensorOptions) => Tensor;
/** Standard normal. */
export declare const randn: (shape: Shape, options?: TensorOptions) => Tensor;
/** Uniform in [0, 1). */
export declare const rand: (shape: Shape, options?: TensorOptions) => Tensor;
/** Integers in [low, high), i64 by default. */
export declare const randint: (low: number, high: number, shape: Shape, options?: TensorOptions) => Tensor;
/** A permutation of 0 … n − 1, i64 by default. */
export declare const randperm: (n: number, options?: TensorOptions) => Tensor;
/** n values from start to end, inclusive. */
export declare const linspace: (start: number, end: number, n: number, options?: TensorOptions) => Tensor;
/** The identity matrix (n, n). */
export declare const eye: (n: number, options?: TensorOptions) => Tensor;
/** 0 … end − 1, or start, start + step, … below end. i64 if all three are integers, else f32. */
export declare function arange(end: number, options?: TensorOptions): Tensor;
export declare function arange(start: number, end: number, step?: number, options?: TensorOptions): Tensor;
export declare const zerosLike: (tensor: Tensor, options?: TensorOptions) => Tensor;
export declare const onesLike: (tensor: Tensor, options?: TensorOptions) => Tensor;
export declare const emptyLike: (tensor: Tensor, options?: TensorOptions) => Tensor;
/**
 * A tensor with a copy of the array's elements, in this shape (default: one dimension), converted if `dtype` is not the array's own.
 * A Uint16Array has the bits of bf16 or f16 and needs `dtype`. A Uint8Array may have bools.
 */
export declare function fromTypedArray(array: TypedArray, shape?: Shape, { dtype, device, requiresGrad }?: TensorOptions): Tensor;
export type Nested = number | bigint | boolean | readonly Nested[];
/**
 * A tensor from a number or from nested arrays: `tensor([[1, 2], [3, 4]])`. f32 by default. Throws RangeError for ragged arrays, and
 * TypeError for a value that is no number, or that does not fit an integer dtype. Fractions are cut off for integer dtypes, as in PyTorch.
 */
export declare function tensor(values: Nested, { dtype, ...options }?: TensorOptions): Tensor;
