/** The config.json of ViT and DeiT, as transformers reads and writes it. */
import {
  checkedOptions,
  classesOf,
  type HuggingFaceConfig,
  inKeysOf,
  labelsOf,
  oneClassEach,
  renamed,
  requireValues,
} from "../hugging-face-config.ts";
import { type VitOptions, type VitShape, vitOptions } from "./options.ts";

const names = {
  imageSize: "image_size",
  patchSize: "patch_size",
  width: "hidden_size",
  heads: "num_attention_heads",
  layers: "num_hidden_layers",
  channels: "num_channels",
  eps: "layer_norm_eps",
  labelSmoothing: "label_smoothing", // no key of transformers, which keeps it
};

/** The values that transformers gives to the keys that a config leaves out. */
const defaults: VitOptions = {
  width: 768,
  heads: 12,
  layers: 12,
  imageSize: 224,
  patchSize: 16,
  channels: 3,
  eps: 1e-12,
};

/** What the model here computes, of what a config may choose. */
const only = { hidden_act: "gelu", qkv_bias: true, hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 };

/** transformers' classes, by what they do with a distillation token. */
const plain = "ViTForImageClassification";
const ofClassToken = "DeiTForImageClassification";
const withTeacher = "DeiTForImageClassificationWithTeacher";
export const vitArchitectures = [plain, ofClassToken, withTeacher] as const;
const withoutHead = "DeiTModel";
export const vitBaseArchitectures = ["ViTModel", withoutHead] as const;

export function toConfig(shape: VitShape): HuggingFaceConfig {
  const { distilled, distillationHead, width, classes } = shape;
  return {
    model_type: distilled ? "deit" : "vit",
    architectures: [distilled ? (distillationHead ? withTeacher : ofClassToken) : plain],
    ...inKeysOf(names, { ...shape, labelSmoothing: shape.labelSmoothing || undefined }),
    intermediate_size: 4 * width,
    ...only,
    ...labelsOf(classes),
  };
}

/**
 * The options of the model that a config describes. Throws `OptionsError` where the model here would compute something
 * else.
 */
export function fromConfig(config: HuggingFaceConfig): VitShape {
  const given = { ...defaults, ...renamed(config, names), classes: classesOf(config) };
  const options = checkedOptions(vitOptions, given, names);
  requireValues(config, { ...only, ...oneClassEach, intermediate_size: 4 * options.width });
  const { architectures } = config;
  const is = (name: string) => Array.isArray(architectures) && architectures.includes(name);
  const distilled = [ofClassToken, withTeacher, withoutHead].some(is);
  return { ...options, distilled, distillationHead: !(is(ofClassToken) || is(withoutHead)) };
}
