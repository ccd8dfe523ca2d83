import { oneOf, v } from "@terse/options";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { type ResNetOptions, type ResNetShape, resnetOptions, resnetPresets } from "./options.ts";
import { ResNet } from "./resnet.ts";

const options = v.object({
  preset: v.optional(oneOf(Object.keys(resnetPresets) as (keyof typeof resnetPresets)[]), "resnet18-cifar"),
  ...v.partial(v.object(resnetOptions.entries)).entries, // each overrides the preset
});

export const resnetEntry = {
  options,
  fields: ["images", "labels"],
  create: ({ preset, ...given }: v.InferOutput<typeof options>, data: DataFacts) =>
    new ResNet(imageShape<ResNetShape>(resnetPresets[preset], given, data)),
  count: (config: ResNetOptions) => ResNet.countElements(config),
  restore: (config: ResNetOptions) => new ResNet(config),
} satisfies ModelEntry;
