/** GPT-2's config.json, as transformers reads and writes it. */
import { OptionsError } from "@terse/options";
import { checkedOptions, type HuggingFaceConfig, inKeysOf, renamed, requireValues } from "../hugging-face-config.ts";
import { type Gpt2Options, type Gpt2Shape, gpt2Options } from "./options.ts";

const names = {
  vocabulary: "vocab_size",
  context: "n_positions",
  width: "n_embd",
  heads: "n_head",
  layers: "n_layer",
  tied: "tie_word_embeddings",
  dropout: "resid_pdrop",
  embeddingDropout: "embd_pdrop",
  attentionDropout: "attn_pdrop",
  eps: "layer_norm_epsilon",
};

/** The values of the config's choices that the model here computes. */
const only = {
  activation_function: ["gelu_new", "gelu_pytorch_tanh"], // two names of one function
  scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false,
  add_cross_attention: false,
};

/** The end of a text in the published vocabulary; transformers takes it for the default. */
const endOfText = 50256;

export function toConfig(shape: Gpt2Shape): HuggingFaceConfig {
  const { vocabulary, dropout, embeddingDropout = dropout, attentionDropout = dropout } = shape;
  return {
    model_type: "gpt2",
    architectures: ["GPT2LMHeadModel"],
    ...inKeysOf(names, { ...shape, embeddingDropout, attentionDropout }),
    ...(vocabulary <= endOfText && { bos_token_id: null, eos_token_id: null }),
    ...only,
    activation_function: only.activation_function[0],
  };
}

/** The values that transformers has for keys that a config leaves out, where they differ from `gpt2Options`. */
const defaults: Gpt2Options = { dropout: 0.1, embeddingDropout: 0.1, attentionDropout: 0.1 };

/**
 * The options of the model that a config describes. Throws `OptionsError` where the model here would compute something
 * else.
 */
export function fromConfig(config: HuggingFaceConfig): Gpt2Shape {
  requireValues(config, only);
  const options = checkedOptions(gpt2Options, { ...defaults, ...renamed(config, names) }, names);
  const inner = config["n_inner"] ?? undefined;
  if (inner !== undefined && inner !== 4 * options.width)
    throw new OptionsError([
      `n_inner: is ${JSON.stringify(inner)}, and only 4 n_embd is known here; use other weights`,
    ]);
  return options;
}
