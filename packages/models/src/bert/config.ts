/** BERT's config.json with PreLN, as transformers' MegatronBert reads and writes it. */
import { checkedOptions, type HuggingFaceConfig, inKeysOf, renamed, requireValues } from "../hugging-face-config.ts";
import { type BertShape, bertOptions } from "./options.ts";

const names = {
  vocabulary: "vocab_size",
  context: "max_position_embeddings",
  width: "hidden_size",
  heads: "num_attention_heads",
  layers: "num_hidden_layers",
  hidden: "intermediate_size",
  dropout: "hidden_dropout_prob",
  attentionDropout: "attention_probs_dropout_prob",
  eps: "layer_norm_eps",
};

/** The values that transformers has for keys that a config leaves out. */
const defaults: BertShape = {
  vocabulary: 29056,
  context: 512,
  width: 1024,
  heads: 16,
  layers: 24,
  hidden: 4096,
  dropout: 0.1,
  attentionDropout: 0.1,
  eps: 1e-12,
};

/** The values of the config's choices that the model here computes. */
const only = {
  model_type: "megatron-bert",
  hidden_act: "gelu",
  type_vocab_size: 2,
  is_decoder: false,
  add_cross_attention: false,
  tie_word_embeddings: true,
  position_embedding_type: "absolute",
};

export const toConfig = (shape: BertShape, architecture: string): HuggingFaceConfig => ({
  architectures: [architecture],
  ...inKeysOf(names, { ...shape, attentionDropout: shape.attentionDropout ?? shape.dropout }),
  ...only,
});

/**
 * The options of the model that a config describes. Throws `OptionsError` where the model here would compute something
 * else.
 */
export function fromConfig(config: HuggingFaceConfig): BertShape {
  requireValues(config, only);
  return checkedOptions(bertOptions, { ...defaults, ...renamed(config, names) }, names);
}
