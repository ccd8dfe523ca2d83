import type { v } from "@terse/options";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { textShape } from "../text-shape.ts";
import { baseClassesOfLlama, classesOfLlama, fromConfig } from "./config.ts";
import { Llama } from "./llama.ts";
import { type LlamaShape, llamaArchitectures, llamaOptions } from "./options.ts";
import { llamaPresets } from "./presets.ts";

const recipe = presetOptions(llamaPresets, "small", llamaOptions);

export const llamaEntry = {
  options: recipe,
  presets: llamaPresets,
  ofTraining: ["attentionDropout"],
  adapterTargets: ["q_proj", "v_proj"],
  modelTypes: llamaArchitectures,
  architectures: classesOfLlama,
  baseArchitectures: baseClassesOfLlama,
  read: fromConfig,
  fields: ["tokens", "next"],
  create({ preset, ...given }: v.InferOutput<typeof recipe>, facts: DataFacts) {
    return new Llama(textShape<LlamaShape>(llamaPresets[preset], given, facts));
  },
  restore: (shape: LlamaShape) => new Llama(shape),
} satisfies ModelEntry;
