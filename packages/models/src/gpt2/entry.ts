import type { v } from "@terse/options";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { textShape } from "../text-shape.ts";
import { fromConfig } from "./config.ts";
import { Gpt2 } from "./gpt2.ts";
import { type Gpt2Shape, gpt2Options, gpt2Presets } from "./options.ts";

const recipe = presetOptions(gpt2Presets, "gpt2", gpt2Options);

export const gpt2Entry = {
  options: recipe,
  presets: gpt2Presets,
  ofTraining: ["dropout", "embeddingDropout", "attentionDropout"],
  adapterTargets: ["c_attn"],
  modelTypes: ["gpt2"],
  read: fromConfig,
  fields: ["tokens", "next"],
  create({ preset, ...given }: v.InferOutput<typeof recipe>, facts: DataFacts) {
    return new Gpt2(textShape(gpt2Presets[preset], given, facts));
  },
  restore: (shape: Gpt2Shape) => new Gpt2(shape),
} satisfies ModelEntry;
