import type { DType, TypedArray } from "@terse/native-loader";

/** A tensor of this thread. Numbers that name no live tensor are refused, never followed. */
export type Handle = number;

/** What `native.find` gives for an operator's name. */
export type OperatorId = number;

/** Where one result of an operator goes: a new tensor, new tensors, a plain value, or the argument of that index. */
export type OperatorResult = "tensor" | "tensors" | "value" | number;

type ErrorClass = new (message: string, trace?: string) => Error;

/** The functions of binding.cc. Each throws TensorError, TensorDisposedError, TypeError or RangeError. */
export interface Native {
  find(name: string): OperatorId;
  /** Arguments in schema order; a tensor is its handle, undefined takes the default, null is None. Own arguments come back as undefined. */
  // biome-ignore lint/suspicious/noExplicitAny: what comes back depends on the operator's schema
  call(operator: OperatorId, ...values: unknown[]): any;
  results(operator: OperatorId): OperatorResult[];

  shape(tensor: Handle): number[];
  strides(tensor: Handle): number[];
  dtype(tensor: Handle): DType;
  device(tensor: Handle): string;
  length(tensor: Handle): number;
  isContiguous(tensor: Handle): boolean;
  isLeaf(tensor: Handle): boolean;
  requiresGrad(tensor: Handle): boolean;
  setRequiresGrad(tensor: Handle, wanted: boolean): void;
  grad(tensor: Handle): Handle | null;
  setGrad(tensor: Handle, gradient: Handle | null): void;
  /** The tensor takes over the memory, shape and dtype of `data`, and stays the same leaf to autograd. */
  setData(tensor: Handle, data: Handle): void;
  pointer(tensor: Handle): bigint;
  item(tensor: Handle): number | bigint;

  /** (n) on the CPU, with a copy of the array's bytes. */
  fromBytes(array: TypedArray, dtype: DType): Handle;
  toBytes(tensor: Handle, array: TypedArray): void;

  dispose(tensor: Handle): void;
  disposeAll(tensors: Float64Array, count: number): void;
  /** No scope frees it: the garbage collector is told of its bytes. */
  keep(tensor: Handle): void;
  memory(): { tensors: number; bytes: number };

  /** Returns what it was before. */
  setGradEnabled(enabled: boolean): boolean;
  manualSeed(seed: number | bigint): void;
  randomState(): Handle;
  setRandomState(state: Handle): void;
  numThreads(): number;
  setNumThreads(threads: number): void;

  backward(root: Handle, gradient: Handle | undefined, retainGraph: boolean): Promise<void>;
  /** Waits for the running backward, and starts no other any more. */
  stop(): void;
  /** The callback of `onReady` gets `token` whenever a backward has completed this leaf's gradient. */
  watch(leaf: Handle, token: number): void;
  unwatch(leaf: Handle): void;
  onReady(callback: (token: number) => void): void;

  openDevice(device: string): string;
  library(): { version: string; folder: string; configuration: string; cuda: boolean };
  setErrors(tensorError: ErrorClass, tensorDisposedError: ErrorClass): void;
}
