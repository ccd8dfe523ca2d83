/** The config.json of ResNet: for ImageNet, transformers'; for CIFAR, which transformers does not have, one that it refuses by its model_type. */
import { OptionsError } from "@terse/options";
import { classesOf, type HuggingFaceConfig, labelsOf, requireValues } from "../hugging-face-config.ts";
import { type ResNetOptions, type ResNetShape, stagesOf } from "./options.ts";

const forImageNet = "ResNetForImageClassification";
const forCifar = "TerseResNet";
export const resnetArchitectures = [forImageNet, forCifar] as const;

/** What the model here computes, of what a config may choose. */
const only = { hidden_act: "relu", downsample_in_first_stage: false, downsample_in_bottleneck: false };

/** Channels that each stage gives. */
const sizesOf = (depth: ResNetShape["depth"], width: number) =>
  [1, 2, 4, 8].map((times) => times * width * (stagesOf[depth].bottleneck ? 4 : 1));

export function toConfig(shape: ResNetShape): HuggingFaceConfig {
  if (shape.stem === "cifar") return { model_type: "terse-resnet", architectures: [forCifar], ...shape };
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

/** Throws `OptionsError` where the model here would compute something else. */
export function fromConfig({ model_type: _, architectures, ...config }: HuggingFaceConfig): ResNetOptions {
  if ((architectures as readonly string[]).includes(forCifar)) return config as ResNetOptions;
  requireValues(config, only);
  // What a config leaves out is that of transformers' ResNet-50.
  const { num_channels = 3, embedding_size = 64, depths = [3, 4, 6, 3], layer_type = "bottleneck" } = config;
  const depth = ([18, 34, 50] as const).find((depth) => {
    const { blocks, bottleneck } = stagesOf[depth];
    return String(blocks) === String(depths) && bottleneck === (layer_type === "bottleneck");
  });
  const sizes = depth && sizesOf(depth, embedding_size as number);
  const { hidden_sizes = [256, 512, 1024, 2048] } = config;
  if (!depth || String(sizes) !== String(hidden_sizes))
    throw new OptionsError([
      `depths, hidden_sizes: ${JSON.stringify(depths)} ${layer_type} layers of ${JSON.stringify(hidden_sizes)} channels are no ResNet-18, -34 or -50 here; use other weights`,
    ]);
  return {
    depth,
    width: embedding_size as number,
    classes: classesOf(config),
    channels: num_channels as number,
    labelSmoothing: (config["label_smoothing"] as number | undefined) ?? 0,
  };
}
