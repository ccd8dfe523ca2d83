export {
  type Floats,
  type NativeBuffer,
  NotFiniteError,
  type Parameters,
  type Sign,
  type Vote,
} from "@terse/native-codecs";
export {
  BadWireError,
  type ChosenParameter,
  type Codec,
  type Decay,
  type DecodeOptions,
  type Layout,
  type OfGradients,
  type Summable,
  type Takes,
  type Units,
  type Zeros,
} from "./codec.ts";
export { bf16 } from "./codecs/bf16/bf16.ts";
export { type BinMeansParameters, binMeans } from "./codecs/bin-means/bin-means.ts";
export { type CountParameters, count } from "./codecs/count/count.ts";
export { dctTopK } from "./codecs/dct-top-k/dct-top-k.ts";
export { f16 } from "./codecs/f16/f16.ts";
export { int8 } from "./codecs/int8/int8.ts";
export { type L1Parameters, l1 } from "./codecs/l1/l1.ts";
export { type LinfParameters, linf } from "./codecs/linf/linf.ts";
export { type QsgdParameters, qsgd } from "./codecs/qsgd/qsgd.ts";
export { readOneScale, scaledSign } from "./codecs/scaled-sign/scaled-sign.ts";
export { sign } from "./codecs/sign/sign.ts";
export { ternary } from "./codecs/ternary/ternary.ts";
export { type TernGrad, terngrad } from "./codecs/terngrad/terngrad.ts";
export { type TopKParameters, topK } from "./codecs/top-k/top-k.ts";
export { codecNamed, codecs, codecsOfGradients } from "./codecs.ts";
export type { Compensating, MomentumOptions, SumOptions } from "./compensating.ts";
export { crc32c } from "./crc32c.ts";
export { type BadFrame, BadFrameError, type Frame, readFrame, writeFrame } from "./frame.ts";
export { signAt, type TiePolicy, type ZeroPolicy } from "./policies.ts";
export { divideBySenders, type KeptElements } from "./shared/indices/indices.ts";
export { ParameterError, SumTooWideError } from "./shared/parameters.ts";
export { philox, type RandomStream, wordsOf } from "./shared/random/random.ts";
export { type ScaleGroups, scaleGroupsWithin } from "./shared/scale-groups/scale-groups.ts";
export { useThreads } from "./threads.ts";
export { majority, majorityOrZero, maxVotes, tally, tallyPlanes, voteImplementation } from "./vote/majority.ts";
