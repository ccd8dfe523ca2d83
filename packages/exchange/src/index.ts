export { Bits, Tally, Ternary, wordsOf } from "./bits.ts";
export type { EncodeOptions } from "./chunks.ts";
export { type Cost, type CostOf, costOf, headerBytes } from "./cost.ts";
export { type CodecCost, type LinkCost, type Measured, measureLink } from "./cost-model/measure-link.ts";
export {
  type PredictedVote,
  type Prediction,
  planesOfVote,
  predictedVotes,
  predictMean,
  predictVote,
  type Question,
} from "./cost-model/predict.ts";
export {
  crossing,
  type Implementation,
  type Network,
  type Setting,
  type Time,
  tableOne,
  timeOf,
  uncompressed,
} from "./cost-model/table-one.ts";
export { type Exchange, type ExchangeOptions, openExchange, type StepExchange, type Tie } from "./exchange.ts";
export { type RefusalReason, StepRefusedError } from "./refusal.ts";
export {
  type LevelsOptions,
  type SumOfLevelsOptions,
  signOfLevels,
  signOfLevelsCost,
  sumOfLevels,
  sumOfLevelsCost,
  sumOfLevelsDirect,
  sumOfLevelsDirectCost,
} from "./schemes/levels.ts";
export { majority, majorityBytes, majorityCost } from "./schemes/majority.ts";
export { majorityOrZero, majorityOrZeroBytes, majorityOrZeroCost } from "./schemes/majority-or-zero.ts";
export { mean, meanBytes, meanCost } from "./schemes/mean.ts";
export {
  type ErrorCompensation,
  meanErrorCompensated,
  meanErrorCompensatedCost,
  ownedElements,
} from "./schemes/mean-error-compensated.ts";
export { type SparseOptions, sparse, sparseCost } from "./schemes/sparse.ts";
export { type SumOptions, sum, sumCost } from "./schemes/sum.ts";
export { tally, tallyBytes, tallyCost } from "./schemes/tally.ts";
export { Loan, Scratch, scratchOf } from "./scratch.ts";
