import { flag, nonNegative, positive, positiveInteger, v } from "@terse/options";

const factor = v.pipe(positive, v.minValue(1)); // how many times longer texts become

/**
 * How rotary embeddings are stretched for texts longer than those of the pre-training, by the names of transformers.
 * `dynamic` stretches beyond the context alone, where no model here goes.
 */
export const ropeScaling = v.variant("name", [
  v.object({ name: v.optional(v.literal("default"), "default") }),
  v.object({ name: v.literal("linear"), factor }), // Chen et al. 2023, https://arxiv.org/abs/2306.15595
  v.object({ name: v.literal("dynamic"), factor }),
  v.object({
    name: v.literal("llama3"), // Dubey et al. 2024, https://arxiv.org/abs/2407.21783
    factor,
    lowFrequencyFactor: v.optional(positive, 1),
    highFrequencyFactor: v.optional(positive, 4),
    originalContext: v.optional(positiveInteger, 8192), // of the pre-training
  }),
  v.object({
    name: v.literal("yarn"), // Peng et al. 2023, https://arxiv.org/abs/2309.00071
    factor,
    originalContext: positiveInteger,
    betaFast: v.optional(positive, 32), // β: turns within the original context, from which on nothing is stretched
    betaSlow: v.optional(positive, 1), // α: turns, up to which all is stretched
    truncate: v.optional(flag, true), // whether the ramp between them begins and ends at whole dimensions
    attentionFactor: v.optional(nonNegative), // of cosines and sines; 0.1 ln factor + 1 if absent, §3.4
  }),
]);

/** How rotary embeddings are stretched, with every default filled in. */
export type RopeScaling = v.InferOutput<typeof ropeScaling>;
