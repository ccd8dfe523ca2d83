export {
  type Floats,
  type NativeBuffer,
  NotFiniteError,
  type Parameters,
  type Sign,
  type Vote,
} from "@terse/native-codecs";
export { bf16 } from "./bf16/bf16.ts";
export {
  BadWireError,
  type Codec,
  type DecodeOptions,
  type Layout,
  type Summable,
  type Takes,
  type Units,
  type Zeros,
} from "./codec.ts";
export { codecNamed, codecs } from "./codecs.ts";
export { type CountParameters, count } from "./count/count.ts";
export { dctTopK } from "./dct-top-k/dct-top-k.ts";
export { f16 } from "./f16/f16.ts";
export { type BadFrame, BadFrameError, type Frame, readFrame, writeFrame } from "./frame.ts";
export { int8 } from "./int8/int8.ts";
export { type L1Parameters, l1 } from "./l1/l1.ts";
export { type LinfParameters, linf } from "./linf/linf.ts";
export { signAt, type TiePolicy, type ZeroPolicy } from "./policies.ts";
export { type QsgdParameters, qsgd } from "./qsgd/qsgd.ts";
export { type Draws, philox, wordsOf } from "./random/random.ts";
export { type Regions, scaleGroupsWithin } from "./regions.ts";
export { scaledSign } from "./scaled-sign/scaled-sign.ts";
export { sign } from "./sign/sign.ts";
export { ternary } from "./ternary/ternary.ts";
export { type TernGrad, terngrad } from "./terngrad/terngrad.ts";
export { useThreads } from "./threads.ts";
export { topK } from "./top-k/top-k.ts";
export { majority, majorityOrZero, maxVotes, tally, tallyPlanes, voteImplementation } from "./vote/majority.ts";
