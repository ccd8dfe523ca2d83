import { flag, positiveInteger, unitInterval, v } from "@terse/options";
import { divides } from "../divides.ts";
import { layerCount } from "../layer-count.ts";

/** The schema of GPT's options. */
export const gptOptions = v.pipe(
  v.object({
    vocabulary: v.optional(positiveInteger, 256), // V
    context: v.optional(positiveInteger, 128), // maximum T
    width: v.optional(positiveInteger, 256), // d
    heads: v.optional(positiveInteger, 4), // d / heads per head
    layers: v.optional(layerCount, 5),
    tied: v.optional(flag, true), // whether the embedding is also the output head
    dropout: v.optional(unitInterval, 0), // of embeddings, of attention, and of what is added to the residual stream
  }),
  divides("heads", "width"),
);

/** The options of GPT; all have defaults. */
export type GptOptions = v.InferInput<typeof gptOptions>;
/** The options of GPT with every default filled in. */
export type GptShape = v.InferOutput<typeof gptOptions>;

const ofBytes = { vocabulary: 256, tied: false, dropout: 0 };
const ofTokens = { vocabulary: 50257, context: 1024, tied: true, dropout: 0 }; // GPT-2's byte-pair vocabulary

/**
 * Model sizes by name: the large ones are those of Ishikawa et al. 2024, D.1; the small ones suit byte tokens and few
 * cores.
 */
export const gptPresets = {
  nano: { ...ofBytes, context: 64, width: 64, heads: 2, layers: 2 },
  small: { ...ofBytes, context: 128, width: 256, heads: 4, layers: 5 },
  medium: { ...ofBytes, context: 128, width: 384, heads: 6, layers: 6 },
  "124M": { ...ofTokens, width: 768, heads: 12, layers: 12 },
  "350M": { ...ofTokens, width: 1024, heads: 16, layers: 24 },
  "774M": { ...ofTokens, width: 1280, heads: 20, layers: 36 },
  "1558M": { ...ofTokens, width: 1600, heads: 25, layers: 48 },
} satisfies Record<string, GptShape>;
