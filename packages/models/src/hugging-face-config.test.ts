/**
 * The keys of transformers' configs: each is read, or must have the value that the model here computes, or has no
 * effect here.
 */
import { describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../tensor/src/testing/python.ts";
import { models, modelsFor } from "./models.ts";

/**
 * Keys without an effect here: initialisation, what a call returns, speed, other heads, tokens for generation alone.
 */
const harmless = new Set([
  ...["transformers_version", "_name_or_path", "dtype", "initializer_range"],
  ...["output_hidden_states", "output_attentions", "return_dict", "use_cache", "chunk_size_feed_forward"],
  ...["summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"],
  ...["reorder_and_upcast_attn", "bos_token_id", "eos_token_id", "pad_token_id"],
  ...["encoder_stride", "pooler_output_size", "pooler_act", "stage_names", "out_features", "out_indices"],
  ...["pretraining_tp"], // how an old version split matrices
  ...["label2id", "architectures", "model_type"], // the last two choose the model
]);
/** Keys of heads that the model does not have. */
const ofClassifiers = new Set(["id2label", "problem_type"]);

const missing = needsModules("transformers");

describe.skipIf(missing !== "")(`a config.json of transformers${missing}`, () => {
  it.each([
    ["GPT2Config()", "GPT2LMHeadModel"],
    ["MegatronBertConfig()", "MegatronBertForPreTraining"],
    ["MegatronBertConfig()", "MegatronBertForSequenceClassification"],
    ["ViTConfig()", "ViTForImageClassification"],
    ["DeiTConfig()", "DeiTForImageClassificationWithTeacher"],
    [`ResNetConfig(layer_type="basic", hidden_sizes=[64, 128, 256, 512])`, "ResNetForImageClassification"],
    ["LlamaConfig()", "LlamaForCausalLM"],
    ["MistralConfig()", "MistralForCausalLM"],
    ["Qwen2Config(use_sliding_window=True)", "Qwen2ForCausalLM"],
    ["Qwen3Config(use_sliding_window=True)", "Qwen3ForCausalLM"],
  ])("of %s for %s has no key that counts and is passed over", async (create, architecture) => {
    const { json } = await runPython(`
import json, transformers
text = json.dumps(transformers.${create}.to_dict())
outputs["json"] = torch.tensor(list(text.encode()))`);
    const bytes = Uint8Array.from((await json!.toTypedArray()) as BigInt64Array, Number);
    const config = { ...JSON.parse(Buffer.from(bytes).toString()), architectures: [architecture] };
    const [name] = modelsFor(config);
    const read = (changed: object) => {
      try {
        return JSON.stringify(models[name!].read({ ...config, ...changed }));
      } catch (error) {
        return String(error);
      }
    };
    const before = read({});
    expect(before).toMatch(/^\{/);
    for (const [key, value] of Object.entries(config)) {
      if (key === "max_window_layers" && "layer_types" in config) continue; // which says it for each layer
      if (harmless.has(key) || (ofClassifiers.has(key) && !("classes" in JSON.parse(before)))) continue;
      const other = typeof value === "number" ? value * 2 + 1 : typeof value === "boolean" ? !value : "another";
      expect(read({ [key]: key === "id2label" ? { 0: "one" } : other }), key).not.toBe(before);
    }
  });
});
