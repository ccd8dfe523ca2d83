/** Random rounding: what its draws depend on, which is the same for any cut of the model into messages. */
import { nonNegativeInteger, v } from "@terse/options";
import type { StepContext } from "./algorithm.ts";

/** The option: ranks and elements have their own draws, and another seed has others. */
export const seed = v.optional(nonNegativeInteger, 0);

/** As an exchange takes them. */
export const drawsOf = (seed: number, { step, vector }: Pick<StepContext, "step" | "vector">) => ({
  seed,
  step,
  offset: vector.offset,
});
