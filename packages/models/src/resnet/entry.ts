import { oneOf, v } from "@terse/options";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { fromConfig, resnetArchitectures } from "./config.ts";
import { type ResNetShape, resnetOptions, resnetPresets } from "./options.ts";
import { ResNet } from "./resnet.ts";

const options = v.object({
  preset: v.optional(oneOf(Object.keys(resnetPresets) as (keyof typeof resnetPresets)[]), "resnet18-cifar"),
  ...v.partial(v.object(resnetOptions.entries)).entries, // each overrides the preset
});

export const resnetEntry = {
  options,
  fields: ["images", "labels"],
  architectures: resnetArchitectures,
  create: ({ preset, ...given }: v.InferOutput<typeof options>, data: DataFacts) =>
    new ResNet(imageShape<ResNetShape>(resnetPresets[preset], given, data)),
  count: (config: HuggingFaceConfig) => ResNet.countElements(fromConfig(config)),
  restore: (config: HuggingFaceConfig) => new ResNet(fromConfig(config)),
} satisfies ModelEntry;
