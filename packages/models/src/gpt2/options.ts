import { flag, positive, positiveInteger, unitInterval, v } from "@terse/options";
import { divides } from "../divides.ts";
import { layerCount } from "../layer-count.ts";

/** The schema of GPT-2's options; the defaults are those of the smallest published model. */
export const gpt2Options = v.pipe(
  v.object({
    vocabulary: v.optional(positiveInteger, 50257), // V
    context: v.optional(positiveInteger, 1024), // maximum T
    width: v.optional(positiveInteger, 768), // d
    heads: v.optional(positiveInteger, 12), // d / heads per head
    layers: v.optional(layerCount, 12),
    tied: v.optional(flag, true), // whether the embedding is also the output head
    dropout: v.optional(unitInterval, 0), // of what is added to the residual stream, and of embeddings and attention
    embeddingDropout: v.optional(unitInterval), // dropout if absent
    attentionDropout: v.optional(unitInterval), // dropout if absent
    eps: v.optional(positive, 1e-5), // of the norms
  }),
  divides("heads", "width"),
);

/** The options of GPT-2; all have defaults. */
export type Gpt2Options = v.InferInput<typeof gpt2Options>;
/** The options of GPT-2 with every default filled in. */
export type Gpt2Shape = v.InferOutput<typeof gpt2Options>;

const published = { vocabulary: 50257, context: 1024, tied: true, dropout: 0, eps: 1e-5 };

/**
 * The models of Radford et al. 2019, Table 2, by their names at Hugging Face, and a small one for a few cores. Dropout
 * is 0 unless it is given; the published value is 0.1.
 */
export const gpt2Presets = {
  tiny: { ...published, context: 128, width: 128, heads: 2, layers: 2 },
  gpt2: { ...published, width: 768, heads: 12, layers: 12 },
  "gpt2-medium": { ...published, width: 1024, heads: 16, layers: 24 },
  "gpt2-large": { ...published, width: 1280, heads: 20, layers: 36 },
  "gpt2-xl": { ...published, width: 1600, heads: 25, layers: 48 },
} satisfies Record<string, Gpt2Shape>;
