import type { v } from "@terse/options";
import { imageShape } from "../image-shape.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { fromConfig, vitArchitectures, vitBaseArchitectures } from "./config.ts";
import { type VitShape, vitOptions, vitPresets } from "./options.ts";
import { Vit } from "./vit.ts";

const options = presetOptions(vitPresets, "deit-tiny", vitOptions);

export const vitEntry = {
  options,
  presets: vitPresets,
  ofData: ["classes", "imageSize"],
  ofTraining: ["labelSmoothing"],
  adapterTargets: ["query", "value"],
  modelTypes: ["vit", "deit"],
  baseArchitectures: vitBaseArchitectures,
  read: fromConfig,
  fields: ["images", "labels"],
  architectures: vitArchitectures,
  create: ({ preset, ...given }: v.InferOutput<typeof options>, data: DataFacts) =>
    new Vit(imageShape<VitShape>(vitPresets[preset], given, data)),
  restore: (shape: VitShape) => new Vit(shape),
} satisfies ModelEntry;
