import { oneOf, v } from "@terse/options";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { type VitOptions, type VitShape, vitOptions, vitPresets } from "./options.ts";
import { Vit } from "./vit.ts";

const options = v.object({
  preset: v.optional(oneOf(Object.keys(vitPresets) as (keyof typeof vitPresets)[]), "deit-tiny"),
  ...v.partial(v.object(vitOptions.entries)).entries, // each overrides the preset
});

export const vitEntry = {
  options,
  fields: ["images", "labels"],
  create: ({ preset, ...given }: v.InferOutput<typeof options>, data: DataFacts) =>
    new Vit(imageShape<VitShape>(vitPresets[preset], given, data)),
  count: (config: VitOptions) => Vit.countParameters(config),
  restore: (config: VitOptions) => new Vit(config),
} satisfies ModelEntry;
