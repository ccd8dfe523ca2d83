/** The config.json of Llama, Mistral, Qwen2 and Qwen3, as transformers reads and writes it. */
import { OptionsError } from "@terse/options";
import { checkedOptions, type HuggingFaceConfig, inKeysOf, renamed, requireValues } from "../hugging-face-config.ts";
import {
  type LlamaArchitecture,
  type LlamaOptions,
  type LlamaShape,
  llamaArchitectures,
  llamaOptions,
} from "./options.ts";
import { ropeFromConfig, ropeToConfig } from "./rope-config.ts";

const names = {
  vocabulary: "vocab_size",
  context: "max_position_embeddings",
  width: "hidden_size",
  heads: "num_attention_heads",
  headWidth: "head_dim",
  layers: "num_hidden_layers",
  hidden: "intermediate_size",
  tied: "tie_word_embeddings",
  attentionDropout: "attention_dropout",
  eps: "rms_norm_eps",
};

/** The keys by which messages name all options. */
const paths = {
  ...names,
  architecture: "model_type",
  keyValueHeads: "num_key_value_heads",
  attentionBias: "attention_bias",
  mlpBias: "mlp_bias",
  window: "sliding_window",
  fullLayers: "max_window_layers",
  padding: "pad_token_id",
};

const shared = { width: 4096, heads: 32, layers: 32, tied: false, eps: 1e-6 };
const ofQwen = { ...shared, vocabulary: 151936, context: 32768, hidden: 22016, keyValueHeads: 32 };

/** The values that transformers has for keys that a config leaves out. */
const defaults = {
  llama: { ...shared, vocabulary: 32000, context: 2048, hidden: 11008 },
  mistral: { ...shared, vocabulary: 32000, context: 131072, hidden: 14336, keyValueHeads: 8, window: 4096 },
  qwen2: ofQwen,
  qwen3: { ...ofQwen, headWidth: 128 },
} satisfies Record<LlamaArchitecture, LlamaOptions>;

/** The values of the config's choices that the model here computes. */
const only = {
  hidden_act: ["silu", "swish"], // two names of one function
  add_cross_attention: false,
  is_causal: true,
  per_layer_config: null,
};

const classes: Readonly<Record<LlamaArchitecture, string>> = {
  llama: "LlamaForCausalLM",
  mistral: "MistralForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
};
export const classesOfLlama: readonly string[] = Object.values(classes);
export const baseClassesOfLlama: readonly string[] = classesOfLlama.map((name) => name.replace("ForCausalLM", "Model"));

const isQwen = (architecture: LlamaArchitecture) => architecture === "qwen2" || architecture === "qwen3";
const choosesBias = (architecture: LlamaArchitecture) => architecture === "llama" || architecture === "qwen3";

export function toConfig(shape: LlamaShape): HuggingFaceConfig {
  const { architecture, window, width, heads, headWidth } = shape;
  // Qwen2's classes know no head_dim; where there is one, they take it.
  const isImplied = architecture === "qwen2" && headWidth === width / heads;
  return {
    model_type: architecture,
    architectures: [classes[architecture]],
    ...inKeysOf(names, { ...shape, headWidth: isImplied ? undefined : headWidth }),
    num_key_value_heads: shape.keyValueHeads,
    hidden_act: only.hidden_act[0],
    ...(choosesBias(architecture) && { attention_bias: shape.attentionBias }),
    ...(architecture === "llama" && { mlp_bias: shape.mlpBias }),
    ...(architecture !== "llama" && { sliding_window: window }),
    ...(isQwen(architecture) && { use_sliding_window: window !== null }),
    ...(isQwen(architecture) && window !== null && { max_window_layers: shape.fullLayers }),
    ...ropeToConfig(shape),
    pad_token_id: shape.padding,
    // The classes' defaults, 1 and 2, mean nothing in another vocabulary.
    bos_token_id: null,
    eos_token_id: null,
  };
}

/**
 * The options of the model that a config describes. Throws `OptionsError` where the model here would compute something
 * else.
 */
export function fromConfig(config: HuggingFaceConfig): LlamaShape {
  const architecture = architectureOf(config);
  requireValues(config, only);
  const { num_key_value_heads: keyValueHeads } = config;
  const given = {
    ...defaults[architecture],
    ...renamed(config, names),
    ...(keyValueHeads !== undefined && { keyValueHeads: keyValueHeads ?? undefined }), // null: as many as queries
  };
  const options = {
    ...given,
    architecture,
    ...(choosesBias(architecture) && { attentionBias: config["attention_bias"] ?? false }),
    ...(architecture === "llama" && { mlpBias: config["mlp_bias"] ?? false }),
    ...windowOf(config, architecture, given.layers),
    padding: paddingOf(config, given.vocabulary),
    ...ropeFromConfig(config, given),
  };
  return checkedOptions(llamaOptions, options, paths);
}

/** By its `model_type`, as in transformers, and where that says nothing, by its class. */
function architectureOf({ model_type: type, architectures }: HuggingFaceConfig): LlamaArchitecture {
  const hasClass = (each: LlamaArchitecture) => Array.isArray(architectures) && architectures.includes(classes[each]);
  return llamaArchitectures.find((each) => each === type) ?? llamaArchitectures.find(hasClass) ?? "llama";
}

/** transformers counts a negative one from the end, as a row of a table. */
function paddingOf({ pad_token_id: padding }: HuggingFaceConfig, vocabulary: number): unknown {
  return typeof padding === "number" && padding < 0 ? padding + vocabulary : (padding ?? null);
}

/** The window, and which layers have it. Llama has none, whatever its config says. */
function windowOf(
  config: HuggingFaceConfig,
  architecture: LlamaArchitecture,
  layers: number,
): Readonly<Record<string, unknown>> {
  const { use_sliding_window: used, sliding_window: given = 4096, max_window_layers: fullLayers = 28 } = config;
  if (architecture === "llama") return {};
  const types = config["layer_types"] ?? undefined;
  const full = Array.isArray(types) ? types.findIndex((type) => type !== "full_attention") : 0;
  const isEach = Array.isArray(types) && types.length === layers;
  if (isEach && full < 0) return { window: null };
  const isKnown = isEach && types.slice(full).every((type) => type === "sliding_attention");
  if (architecture === "mistral") {
    if (types === undefined || (isKnown && full === 0)) return { window: given };
    throw new OptionsError(["layer_types: of mistral only layers of one type are known here; use other weights"]);
  }
  const window = used ? given : null;
  if (types === undefined) return window === null ? {} : { window, fullLayers };
  if (isKnown && window !== null) return { window, fullLayers: full };
  throw new OptionsError([
    isKnown
      ? "layer_types: has sliding_attention without use_sliding_window and sliding_window; give both"
      : "layer_types: only full_attention in the first layers and sliding_attention in the others is known here; use other weights",
  ]);
}
