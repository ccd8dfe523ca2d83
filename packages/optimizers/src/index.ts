// From simple to rich.
export { adamw, adamwOptions } from "./adamw.ts";
export type { Algorithm, OptimizerExchange, State, StepContext } from "./algorithm.ts";
export { algorithms } from "./algorithms.ts";
export { distributedLion, distributedLionOptions } from "./distributed-lion.ts";
export { compareRanks, RanksDifferError } from "./fingerprint.ts";
export { lion, lionOptions } from "./lion.ts";
export { lionCub, lionCubOptions } from "./lion-cub.ts";
export { Optimizer, type OptimizerOptions, OverlapError, type StepReport } from "./optimizer.ts";
