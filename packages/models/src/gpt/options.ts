import { flag, positiveInteger, v } from "@terse/options";

export const gptOptions = v.pipe(
  v.object({
    vocabulary: v.optional(positiveInteger, 256), // V
    context: v.optional(positiveInteger, 128), // maximum T
    width: v.optional(positiveInteger, 256), // d
    heads: v.optional(positiveInteger, 4), // d / heads per head
    layers: v.optional(positiveInteger, 5),
    tied: v.optional(flag, true), // whether the embedding is also the output head
  }),
  v.check(({ width, heads }) => width % heads === 0, "width must be a multiple of heads"),
);

export type GptOptions = v.InferInput<typeof gptOptions>;
export type GptShape = v.InferOutput<typeof gptOptions>;

/** Size of GPT-2's byte-pair vocabulary. */
const vocabulary = 50257;

/** Model sizes by name. The large ones are those of Ishikawa et al. 2024, D.1; the small ones are for byte tokens on a few cores. */
export const gptPresets = {
  nano: { vocabulary: 256, context: 64, width: 64, heads: 2, layers: 2, tied: false },
  small: { vocabulary: 256, context: 128, width: 256, heads: 4, layers: 5, tied: false },
  medium: { vocabulary: 256, context: 128, width: 384, heads: 6, layers: 6, tied: false },
  "124M": { vocabulary, context: 1024, width: 768, heads: 12, layers: 12, tied: true },
  "350M": { vocabulary, context: 1024, width: 1024, heads: 16, layers: 24, tied: true },
  "774M": { vocabulary, context: 1024, width: 1280, heads: 20, layers: 36, tied: true },
  "1558M": { vocabulary, context: 1024, width: 1600, heads: 25, layers: 48, tied: true },
} satisfies Record<string, GptShape>;
