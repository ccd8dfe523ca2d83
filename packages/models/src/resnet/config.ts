/**
 * The config.json of ResNet: transformers' for ImageNet. It has none for CIFAR: ours has a model_type that it refuses.
 */
import { OptionsError } from "@terse/options";
import {
  checkedOptions,
  classesOf,
  type HuggingFaceConfig,
  labelsOf,
  oneClassEach,
  requireValues,
} from "../hugging-face-config.ts";
import { type ResNetShape, resnetOptions, stagesOf } from "./options.ts";

const forImageNet = "ResNetForImageClassification";
const forCifar = "TerseResNet";
export const resnetArchitectures = [forImageNet, forCifar] as const;

export const resnetBaseArchitectures = ["ResNetModel"] as const;
const typeForCifar = "terse-resnet";

const names = { width: "embedding_size", channels: "num_channels", labelSmoothing: "label_smoothing" };

/** The values of the config's choices that the model here computes. */
const only = { hidden_act: "relu", downsample_in_first_stage: false, downsample_in_bottleneck: false };

/** Channels that each stage gives. */
const sizesOf = (depth: ResNetShape["depth"], width: number) =>
  [1, 2, 4, 8].map((times) => times * width * (stagesOf[depth].bottleneck ? 4 : 1));

export function toConfig(shape: ResNetShape): HuggingFaceConfig {
  if (shape.stem === "cifar") return { model_type: typeForCifar, architectures: [forCifar], ...shape };
  const { depth, width, classes, channels, labelSmoothing } = shape;
  const { blocks, bottleneck } = stagesOf[depth];
  return {
    model_type: "resnet",
    architectures: [forImageNet],
    num_channels: channels,
    embedding_size: width,
    hidden_sizes: sizesOf(depth, width),
    depths: blocks,
    layer_type: bottleneck ? "bottleneck" : "basic",
    ...(labelSmoothing > 0 && { label_smoothing: labelSmoothing }), // no key of transformers, which keeps it
    ...only,
    ...labelsOf(classes),
  };
}

/**
 * The options of the model that a config describes. Throws `OptionsError` where the model here would compute something
 * else.
 */
export function fromConfig({ model_type, architectures, ...config }: HuggingFaceConfig): ResNetShape {
  if (model_type === typeForCifar || (Array.isArray(architectures) && architectures.includes(forCifar))) {
    const { id2label, label2id, ...shape } = config;
    return checkedOptions(resnetOptions, shape, {});
  }
  requireValues(config, { ...only, ...oneClassEach });
  // Keys that a config leaves out have the values of transformers' ResNet-50.
  const { num_channels = 3, embedding_size = 64, depths = [3, 4, 6, 3], layer_type = "bottleneck" } = config;
  const depth = ([18, 34, 50] as const).find((depth) => {
    const { blocks, bottleneck } = stagesOf[depth];
    return String(blocks) === String(depths) && layer_type === (bottleneck ? "bottleneck" : "basic");
  });
  const sizes = depth && sizesOf(depth, embedding_size as number);
  const { hidden_sizes = [256, 512, 1024, 2048] } = config;
  if (!depth || !Number.isSafeInteger(embedding_size) || String(sizes) !== String(hidden_sizes))
    throw new OptionsError([
      `depths, hidden_sizes: ${JSON.stringify(depths)} ${layer_type} layers of ${JSON.stringify(hidden_sizes)} channels are no ResNet-18, -34 or -50 here; use other weights`,
    ]);
  const given = {
    depth,
    width: embedding_size,
    classes: classesOf(config),
    channels: num_channels,
    labelSmoothing: config["label_smoothing"] ?? 0,
  };
  return checkedOptions(resnetOptions, given, names);
}
