// From simple to rich.
export { adamw, adamwOptions } from "./algorithms/adamw.ts";
export type { Algorithm, OptimizerExchange, StepContext, StepMessage, Vector } from "./algorithms/algorithm.ts";
export { algorithms } from "./algorithms/algorithms.ts";
export { distributedLion, distributedLionOptions } from "./algorithms/distributed-lion.ts";
export { lamb, lambOptions } from "./algorithms/lamb.ts";
export { lion, lionOptions } from "./algorithms/lion.ts";
export { lionCub, lionCubOptions } from "./algorithms/lion-cub.ts";
export { oneBitAdam, oneBitAdamOptions } from "./algorithms/one-bit-adam.ts";
export { lambBasicOneBit, lambBasicOneBitOptions, oneBitLamb, oneBitLambOptions } from "./algorithms/one-bit-lamb.ts";
export { sgd, sgdOptions } from "./algorithms/sgd.ts";
export { signsgd, signsgdOptions, signum, signumOptions } from "./algorithms/signum.ts";
export type { OwnedShare, State } from "./algorithms/state.ts";
export { type ClipBy, clipBys } from "./clipping.ts";
export { compareRanks, RanksDifferError } from "./fingerprint.ts";
export { Optimizer, type OptimizerOptions, OverlapError, type StepReport } from "./optimizer.ts";
export type { ParameterGroup } from "./parameter-groups.ts";
export { type SavedState, SavedStateError, type Scalar, type StoredState } from "./saved-state.ts";
export { MessagesError } from "./span-exchange.ts";
