export { Bits, Tally, Ternary, wordsOf } from "./bits.ts";
export { type Exchange, type ExchangeOptions, openExchange, type StepExchange, type Tie } from "./exchange.ts";
export { type RefusalReason, StepRefusedError } from "./refusal.ts";
export { majority, majorityBytes } from "./schemes/majority.ts";
export { majorityOrZero, majorityOrZeroBytes } from "./schemes/majority-or-zero.ts";
export { mean, meanBytes } from "./schemes/mean.ts";
export { tally, tallyBytes } from "./schemes/tally.ts";
