import { oneOf, v } from "@terse/options";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { fromConfig, resnetArchitectures, resnetBaseArchitectures } from "./config.ts";
import { type ResNetShape, resnetOptions, resnetPresets } from "./options.ts";
import { ResNet } from "./resnet.ts";

const options = v.object({
  preset: v.optional(oneOf(Object.keys(resnetPresets) as (keyof typeof resnetPresets)[]), "resnet18-cifar"),
  ...v.partial(v.object(resnetOptions.entries)).entries, // each overrides the preset
});

export const resnetEntry = {
  options,
  presets: resnetPresets,
  ofData: ["classes"],
  ofTraining: ["labelSmoothing"],
  modelTypes: ["resnet", "terse-resnet"],
  baseArchitectures: resnetBaseArchitectures,
  read: fromConfig,
  fields: ["images", "labels"],
  architectures: resnetArchitectures,
  create: ({ preset, ...given }: v.InferOutput<typeof options>, data: DataFacts) =>
    new ResNet(imageShape<ResNetShape>(resnetPresets[preset], given, data)),
  count: (shape: ResNetShape) => ResNet.countElements(shape),
  restore: (shape: ResNetShape) => new ResNet(shape),
} satisfies ModelEntry;
