export { enterQueue } from "./collective-queue.ts";
export { type Cost, type CostOf, costOf, headerBytes } from "./cost.ts";
export { type BucketQuestion, type Buckets, bestBuckets } from "./cost-model/bucket.ts";
export { type Choice, chooseVote } from "./cost-model/choose-vote.ts";
export { type CodecCost, type LinkCost, type Measured, measureLink } from "./cost-model/measure-link.ts";
export {
  type PredictedVote,
  type Prediction,
  predictedVotes,
  predictMean,
  predictVote,
  predictVoteOfHosts,
  type Question,
} from "./cost-model/predict.ts";
export { predictRound, returningShare } from "./cost-model/predict-round.ts";
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
export {
  type Exchange,
  type ExchangeOptions,
  type MeanOptions,
  openExchange,
  StepExchange,
  type Tie,
} from "./exchange.ts";
export type { CallOptions } from "./exchange-context.ts";
export { type DenseScheme, type DenseType, dense, denseTypes } from "./means/dense.ts";
export { mean, meanCost } from "./means/f32-mean.ts";
export { bytesOfRound, type Message, memoryOfRound } from "./messages.ts";
export type { EncodeOptions } from "./owned-chunks.ts";
export { type Encode, PackedBits, type Signed, Tally, Ternary, wordsOf } from "./packed-bits.ts";
export { type RefusalReason, StepRefusedError } from "./refusal.ts";
export { type ChosenSchemes, standardSchemes } from "./schemes.ts";
export { Loan, Scratch, scratchOf } from "./scratch.ts";
export type { Among, AmongKind } from "./sums/among.ts";
export {
  type ComputedMeanOptions,
  computedMean,
  computedMeanCost,
  type FromOwnerOptions,
  type MeanAtOwnerOptions,
} from "./sums/computed-mean.ts";
export {
  type SumOfFieldsOptions,
  sumOfFields,
  sumOfFieldsCost,
  sumOfFieldsDirect,
  sumOfFieldsDirectCost,
} from "./sums/fields.ts";
export {
  type LevelsOptions,
  type SumOfLevelsOptions,
  signOfLevels,
  signOfLevelsCost,
  sumOfLevels,
  sumOfLevelsCost,
  sumOfLevelsDirect,
  sumOfLevelsDirectCost,
} from "./sums/levels.ts";
export {
  type ChunkWire,
  type ErrorCompensation,
  type MeanOfWires,
  meanErrorCompensated,
  meanErrorCompensatedCost,
  ownedElements,
  ownedRange,
} from "./sums/mean-error-compensated.ts";
export { type Over, type SparseOptions, sparse, sparseCost } from "./sums/sparse.ts";
export { type SumOptions, sum, sumCost } from "./sums/sum.ts";
export { type AllToAllOptions, allToAll } from "./votes/all-to-all.ts";
export { type AutoOptions, type AutoVoteScheme, auto } from "./votes/auto.ts";
export { type CountOptions, count } from "./votes/count.ts";
export { type HierarchicalOptions, hierarchical } from "./votes/hierarchical.ts";
export type { Outcome, Result } from "./votes/outcome.ts";
export { parameterServer } from "./votes/parameter-server.ts";
export { parameterServerEfficient } from "./votes/parameter-server-efficient.ts";
export {
  majority,
  majorityCost,
  majorityOrZero,
  majorityOrZeroCost,
  tally,
  tallyCost,
  type VoteOptions,
  vote,
} from "./votes/vote.ts";
export type { VoteScheme } from "./votes/vote-scheme.ts";
export {
  type VoteSchemeEntry,
  type VoteSchemeName,
  type VoteSchemeOptions,
  voteSchemes,
} from "./votes/vote-schemes.ts";
export { type Part, type Watch, watched } from "./watch.ts";
