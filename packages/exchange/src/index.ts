/** The exchange between ranks. What an optimizer asks for is `Exchange`; one kind of exchange is one file of kinds/. */

export type { ChosenSchemes } from "./chosen-schemes.ts";
export { enterQueue } from "./collective-queue.ts";
export { headerBytes } from "./cost.ts";
export { bestBuckets } from "./cost-model/bucket.ts";
export type { Choice } from "./cost-model/choose-vote.ts";
export { type CodecCost, type LinkCost, type Measured, measureLink, noComputing } from "./cost-model/measure-link.ts";
export { type Prediction, predictedVotes, predictMean, predictVote, predictVoteOfHosts } from "./cost-model/predict.ts";
export { predictRound, returningShare } from "./cost-model/predict-round.ts";
export {
  crossing,
  type Implementation,
  type Network,
  tableOne,
  timeOf,
  uncompressed,
} from "./cost-model/table-one.ts";
export { type Exchange, type ExchangeOptions, openExchange, StepExchange, type Tie } from "./exchange.ts";
export { carryAlone } from "./kinds/carry-alone.ts";
export { type FromOwnerOptions, fromOwner } from "./kinds/computed-mean.ts";
export { mean } from "./kinds/mean.ts";
export {
  type ChunkWire,
  type ErrorCompensation,
  type MeanOfWires,
  meanErrorCompensated,
  ownedElements,
  ownedRange,
} from "./kinds/mean-error-compensated.ts";
export { largestSumOfLevels } from "./kinds/sum-of-levels.ts";
export { vote } from "./kinds/vote.ts";
export { dense, denseTypes } from "./means/dense.ts";
export type { DenseType } from "./means/dense-scheme.ts";
export { meanCost } from "./means/f32-mean.ts";
export { bytesOfRound, type Message, memoryOfRound } from "./messages.ts";
export { type Encode, PackedBits, Tally, Ternary } from "./packed-bits.ts";
export { noteOf, ofMean, type RefusalReason, reasonOf, reasonOfNote, StepRefusedError } from "./refusal.ts";
export { standardSchemes } from "./schemes.ts";
export { allToAll } from "./votes/all-to-all.ts";
export type { AutoVoteScheme } from "./votes/auto.ts";
export { count } from "./votes/count.ts";
export { type HierarchicalOptions, hierarchical } from "./votes/hierarchical.ts";
export { parameterServer } from "./votes/parameter-server.ts";
export { parameterServerEfficient } from "./votes/parameter-server-efficient.ts";
export { UnsupportedOutcomeError, type VoteScheme } from "./votes/vote-scheme.ts";
export { type VoteSchemeEntry, type VoteSchemeName, voteSchemes } from "./votes/vote-schemes.ts";
export type { Watch } from "./watch.ts";
export { type Part, watched } from "./watched.ts";
