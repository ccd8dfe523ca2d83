export { Bits, Tally, Ternary, wordsOf } from "./bits.ts";
export { type Cost, type CostOf, costOf, headerBytes } from "./cost.ts";
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
export { majority, majorityBytes, majorityCost } from "./schemes/majority.ts";
export { majorityOrZero, majorityOrZeroBytes, majorityOrZeroCost } from "./schemes/majority-or-zero.ts";
export { mean, meanBytes, meanCost } from "./schemes/mean.ts";
export { tally, tallyBytes, tallyCost } from "./schemes/tally.ts";
export { Loan, Scratch, scratchOf } from "./scratch.ts";
