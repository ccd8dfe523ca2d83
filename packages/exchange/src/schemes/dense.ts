/** The mean of a vector of f32, sent as f32, bf16, f16 or int8. */
import type { BufferLike, Group } from "@terse/collectives";
import type { CostOf } from "../cost.ts";
import { halfMean, halfMeanCost } from "./half-mean.ts";
import { int8MeanCost, int8Means } from "./int8-mean.ts";
import { mean, meanCost } from "./mean.ts";

export type DenseType = "f32" | "bf16" | "f16" | "int8";

export interface DenseScheme {
  readonly type: DenseType;
  /**
   * x ← mean over ranks of x (f32), the same bits on every rank. `note`, this rank's refusal, and what does not fit into 16 bits
   * reach every rank as a StepRefusedError where the type is one of 8 or 16 bits; in f32 what is not finite spreads to all ranks.
   * All that it asks of the first group it asks before it first waits, unless there is a `together`; `gather` as in a vote.
   */
  mean(group: Group, x: BufferLike, options?: { note?: number; gather?: Group }): Promise<void>;
  /** Of what asks the first group for more when something has come: the means of all vectors. `sent`: it has asked for all. */
  together?(
    group: Group,
    vectors: readonly BufferLike[],
    options: { note: number; gather: Group; sent: () => void },
  ): Promise<void>;
  readonly cost: CostOf;
}

const schemes: Record<DenseType, DenseScheme> = {
  f32: { type: "f32", mean, cost: meanCost },
  bf16: { type: "bf16", mean: (group, x, options) => halfMean(group, x, "bf16", options), cost: halfMeanCost },
  f16: { type: "f16", mean: (group, x, options) => halfMean(group, x, "f16", options), cost: halfMeanCost },
  int8: {
    type: "int8",
    mean: (group, x, options) => int8Means(group, [x], options),
    together: int8Means,
    cost: int8MeanCost,
  },
};

export function dense(type: DenseType): DenseScheme {
  if (!Object.hasOwn(schemes, type))
    throw new RangeError(`dense: there is no type "${type}"; there is ${Object.keys(schemes).join(", ")}.`);
  return schemes[type];
}
