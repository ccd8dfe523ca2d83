export type { BufferLike, DType, NativeBuffer, TypedArray } from "@terse/native-tensor";
export { TensorDisposedError, TensorError } from "@terse/native-tensor";
export { Arena, type Segment } from "./arena.ts";
export { type AutocastOptions, autocast } from "./autocast.ts";
export { backwardIsUnderWay } from "./backward-is-under-way.ts";
export { type Argument, call } from "./call.ts";
export { checkpoint } from "./checkpoint.ts";
export {
  arange,
  empty,
  emptyLike,
  eye,
  fromTypedArray,
  full,
  linspace,
  type NestedValues,
  ones,
  onesLike,
  rand,
  randint,
  randn,
  randperm,
  type Shape,
  type TensorOptions,
  tensor,
  withDevice,
  zeros,
  zerosLike,
} from "./factories.ts";
export { keep, memory, memoryDuring, scope } from "./lifetime.ts";
export * from "./nn/index.ts";
export { noGrad } from "./no-grad.ts";
export type { Dim, Operators } from "./operators.ts";
export { manualSeed, randomState, setRandomState } from "./random.ts";
export { bf16Units, libtorch, numThreads, openDevice, setNumThreads, threadTeam } from "./runtime.ts";
export { cat, type Operand, stack, Tensor, where } from "./tensor.ts";
