import type { v } from "@terse/options";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { fromConfig, resnetArchitectures, resnetBaseArchitectures } from "./config.ts";
import { type ResNetShape, resnetOptions, resnetPresets } from "./options.ts";
import { ResNet } from "./resnet.ts";

const options = presetOptions(resnetPresets, "resnet18-cifar", resnetOptions);

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
  restore: (shape: ResNetShape) => new ResNet(shape),
} satisfies ModelEntry;
