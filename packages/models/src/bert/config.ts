/** BERT's config.json with PreLN, as transformers' MegatronBert reads and writes it. */
import { type HuggingFaceConfig, renamed, requireValues } from "../hugging-face-config.ts";
import type { BertOptions, BertShape } from "./options.ts";

const names = {
  vocabulary: "vocab_size",
  context: "max_position_embeddings",
  width: "hidden_size",
  heads: "num_attention_heads",
  layers: "num_hidden_layers",
  hidden: "intermediate_size",
  dropout: "hidden_dropout_prob",
};

/** What a config that leaves these out has, in transformers. */
const defaults: BertShape = {
  vocabulary: 29056,
  context: 512,
  width: 1024,
  heads: 16,
  layers: 24,
  hidden: 4096,
  dropout: 0.1,
};

/** What the model here computes, of what a config may choose. */
const only = {
  model_type: "megatron-bert",
  hidden_act: "gelu",
  layer_norm_eps: 1e-12,
  type_vocab_size: 2,
  is_decoder: false,
  add_cross_attention: false,
  tie_word_embeddings: true,
};

export const toConfig = (shape: BertShape, architecture: string): HuggingFaceConfig => ({
  architectures: [architecture],
  vocab_size: shape.vocabulary,
  max_position_embeddings: shape.context,
  hidden_size: shape.width,
  num_attention_heads: shape.heads,
  num_hidden_layers: shape.layers,
  intermediate_size: shape.hidden,
  hidden_dropout_prob: shape.dropout,
  attention_probs_dropout_prob: shape.dropout,
  ...only,
});

/** Throws `OptionsError` where the model here would compute something else. */
export function fromConfig(config: HuggingFaceConfig): BertOptions {
  requireValues(config, only);
  return { ...defaults, ...renamed(config, names) };
}
