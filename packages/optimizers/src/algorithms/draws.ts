/**
 * Random rounding: its draws depend on the seed, the step, the rank and the element's place, and so not on how the
 * model is cut into messages.
 */
import { nonNegativeInteger, v } from "@terse/options";
import type { StepContext } from "./algorithm.ts";

/** The option. Ranks and elements have their own draws; another seed gives others. */
export const seed = v.optional(nonNegativeInteger, 0);

/** The options of random rounding, as an exchange takes them. */
export const drawsOf = (seed: number, { step, vector }: Pick<StepContext, "step" | "vector">) => ({
  seed,
  step,
  offset: vector.offset,
});
