import type { DType, TypedArray } from "@terse/native-loader";

/** A tensor of this thread. A number that is no live tensor's handle is an error. */
export type Handle = number;

/** What `native.find` returns for an operator's name. */
export type OperatorId = number;

/** One result of an operator: a new tensor, new tensors, a plain value, or the argument of that index. */
export type OperatorResult = "tensor" | "tensors" | "value" | number;

type ErrorClass = new (message: string, trace?: string) => Error;

/** The functions of binding.cc. Each throws TensorError, TensorDisposedError, TypeError or RangeError. */
export interface Native {
  /** Throws TensorError where the loaded libtorch has no such operator. */
  find(name: string): OperatorId;
  /**
   * Arguments in schema order: handles for tensors, undefined for the default, null for None. A result that is one of
   * the arguments is returned as undefined.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the result's type depends on the operator's schema
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
  /** Gives the tensor the memory, shape and dtype of `data`. It stays the same leaf for autograd. */
  setData(tensor: Handle, data: Handle): void;
  pointer(tensor: Handle): bigint;
  /** Keeps the tensor's storage, at its address, until `release` gets the number that this returns. */
  retain(tensor: Handle): number;
  release(retained: number): void;
  item(tensor: Handle): number | bigint;

  /** (n) on the CPU, with a copy of the array's bytes. */
  fromBytes(array: TypedArray, dtype: DType): Handle;
  toBytes(tensor: Handle, array: TypedArray): void;

  dispose(tensor: Handle): void;
  disposeAll(tensors: Float64Array, count: number): void;
  /** For tensors that no scope frees: reports their bytes to the garbage collector. */
  keep(tensor: Handle): void;
  memory(): { tensors: number; bytes: number };
  /** Counts from now on what tensors on the CPU take, in the whole process. */
  countMemory(): void;
  /** Ends the counting. Returns the bytes that were taken after each allocation. */
  countedMemory(): number[];

  /** Returns the previous setting. */
  setGradEnabled(enabled: boolean): boolean;
  /**
   * Returns the previous dtype of this thread for `leaveAutocast`, null where autocast was off. A dtype of null turns
   * it off.
   */
  enterAutocast(deviceType: string, dtype: DType | null): DType | null;
  leaveAutocast(deviceType: string, previous: DType | null): void;
  manualSeed(seed: number | bigint): void;
  randomState(): Handle;
  setRandomState(state: Handle): void;
  /** Whether the processor multiplies bf16 by units for matrices, or by those for vectors. */
  processorHas(what: "amx_bf16" | "avx512_bf16"): boolean;
  numThreads(): number;
  setNumThreads(threads: number): void;
  /** The address of `run_on_team` (openmp.h), as long as the process runs. */
  team(): bigint;

  backward(root: Handle, gradient: Handle | undefined, retainGraph: boolean): Promise<void>;
  /** Whether a backward that has not ended adds to the gradient of a leaf in this tensor's memory. */
  backwardIsUnderWay(leaves: Handle): boolean;
  /** Waits for the running backward, and starts no other. */
  stop(): void;
  /**
   * Whenever a backward has completed this leaf's gradient, the callback of `onGradientReady` gets `token`. One hook
   * per leaf.
   */
  addGradientHook(leaf: Handle, token: number): void;
  removeGradientHook(leaf: Handle): void;
  onGradientReady(callback: (token: number) => void): void;
  /**
   * The next backward writes into the memory of these leaves' gradients and does not add to it. Until that has ended, a
   * leaf it has not reached yet has no gradient, and the memory holds old values; then a leaf that it did not reach has
   * a gradient of 0.
   */
  replaceGradients(leaves: readonly Handle[]): void;

  /**
   * Begins a part of the forward pass of which backward keeps only the inputs. Returns the tensors to compute it from.
   * The callback of `onRecompute` knows the part by its token.
   */
  beginCheckpoint(inputs: readonly Handle[], token: number): Handle[];
  /**
   * Ends the innermost part. Returns its result for autograd, or null where that needs no gradient. `null`: the part
   * has failed.
   */
  endCheckpoint(result: Handle | null): Handle | null;
  /**
   * To compute a part again, the callback gives `recomputed` the result for these inputs. Without inputs it forgets the
   * part.
   */
  onRecompute(callback: (token: number, inputs?: Handle[]) => void): void;
  recomputed(result: Handle): void;

  openDevice(device: string): string;
  library(): { version: string; folder: string; configuration: string; cuda: boolean };
  setErrors(tensorError: ErrorClass, tensorDisposedError: ErrorClass): void;
}
