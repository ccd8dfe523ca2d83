export { adamw } from "./algorithms/adamw.ts";
export type { Algorithm, OptimizerExchange, Rules, StepContext, StepMessage, Vector } from "./algorithms/algorithm.ts";
export { algorithms } from "./algorithms/algorithms.ts";
export { demo } from "./algorithms/demo.ts";
export { dion } from "./algorithms/dion.ts";
export { distributedLion } from "./algorithms/distributed-lion.ts";
export { lamb } from "./algorithms/lamb.ts";
export { lion } from "./algorithms/lion.ts";
export { lionCub } from "./algorithms/lion-cub.ts";
export { muon } from "./algorithms/muon.ts";
export { oneBitAdam } from "./algorithms/one-bit-adam.ts";
export { lambBasicOneBit, oneBitLamb } from "./algorithms/one-bit-lamb.ts";
export { sgd } from "./algorithms/sgd.ts";
export { signMuon } from "./algorithms/sign-muon.ts";
export { signsgd, signum } from "./algorithms/signum.ts";
export type { OwnedShare, State } from "./algorithms/state.ts";
export { zeroOneAdam } from "./algorithms/zero-one-adam.ts";
export { type ClipBy, clipBys } from "./clipping/clipping.ts";
export { normOf } from "./clipping/gradient-norms.ts";
export {
  type Alone,
  type Definition,
  define,
  type InRounds,
  type InRun,
  type Method,
  type RunOfRounds,
} from "./define.ts";
export { RanksDifferError } from "./fingerprint.ts";
export type { FlatParameters } from "./flat-parameters.ts";
export { anyCodec } from "./gradients/any-codec.ts";
export { compressed } from "./gradients/compressed.ts";
export { dgc } from "./gradients/dgc.ts";
export { efSignsgd } from "./gradients/ef-signsgd.ts";
export { graddrop } from "./gradients/graddrop.ts";
export type { CompressionRules, GradientCompression } from "./gradients/gradient-compression.ts";
export { gradientCompressions } from "./gradients/gradients.ts";
export { lionSteps } from "./gradients/lion-steps.ts";
export { powersgd } from "./gradients/powersgd.ts";
export { qsgd } from "./gradients/qsgd.ts";
export { terngrad } from "./gradients/terngrad.ts";
export { refusedOptions } from "./kept-options.ts";
export type { Layer } from "./layer.ts";
export { type FragmentOrder, fragmentOrders } from "./local/fragments.ts";
export { type HostGroups, hostGroups, layoutOf } from "./local/host-groups.ts";
export { LocalSteps, type LocalStepsOptions } from "./local/local-steps.ts";
export { RoundSchedule } from "./local/round-schedule.ts";
export { asOfOneHost, isOfPendingRound, refusalIn, roundsIn } from "./local/saved-rounds.ts";
export { matrixShape } from "./matrix-shape.ts";
export { type Mesh, meshOf, type Parallel } from "./mesh.ts";
export { Optimizer } from "./optimizer.ts";
export type { OptimizerOptions } from "./optimizer-options.ts";
export { OverlapError } from "./overlap.ts";
export type { ParameterGroup } from "./parameter-groups.ts";
export { MessagesError } from "./run-algorithm.ts";
export { type SavedState, SavedStateError, type Scalar, type StoredState } from "./saved-state.ts";
export type { StepWatch } from "./step.ts";
export type { StepReport, TrainingOptimizer } from "./training-optimizer.ts";

export { useThreads } from "./use-threads.ts";
