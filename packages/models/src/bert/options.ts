import { positive, positiveInteger, unitInterval, v } from "@terse/options";
import { divides } from "../divides.ts";
import { layerCount } from "../layer-count.ts";

/** The schema of BERT's options; the defaults are those of Base. `heads` must divide `width`. */
export const bertOptions = v.pipe(
  v.object({
    vocabulary: v.optional(positiveInteger, 30522), // V
    context: v.optional(positiveInteger, 512), // maximum T
    width: v.optional(positiveInteger, 768), // d
    heads: v.optional(positiveInteger, 12), // d / heads per head
    layers: v.optional(layerCount, 12),
    hidden: v.optional(positiveInteger, 3072), // of the MLPs
    dropout: v.optional(unitInterval, 0), // of embeddings, attention, residuals, and of what the classifier reads
    attentionDropout: v.optional(unitInterval), // dropout if absent
    eps: v.optional(positive, 1e-12), // of the norms
  }),
  divides("heads", "width"),
);

/** The options of BERT; all have defaults. */
export type BertOptions = v.InferInput<typeof bertOptions>;
/** The options of BERT with every default filled in. */
export type BertShape = v.InferOutput<typeof bertOptions>;

const published = { vocabulary: 30522, context: 512, dropout: 0, eps: 1e-12 };

/**
 * Base and Large: Devlin et al. 2019, §3. Tiny: Turc et al. 2019, Table 1. Dropout is 0 unless it is given; the
 * published value is 0.1.
 */
export const bertPresets = {
  tiny: { ...published, width: 128, heads: 2, layers: 2, hidden: 512 },
  base: { ...published, width: 768, heads: 12, layers: 12, hidden: 3072 },
  large: { ...published, width: 1024, heads: 16, layers: 24, hidden: 4096 },
} satisfies Record<string, BertShape>;
