import { parseOptions, type v } from "@terse/options";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { textShape } from "../text-shape.ts";
import { Gpt } from "./gpt.ts";
import { type GptOptions, type GptShape, gptOptions, gptPresets } from "./options.ts";

const recipe = presetOptions(gptPresets, "small", gptOptions);

const read = ({ model_type: _, ...config }: GptOptions & { model_type?: unknown }) =>
  parseOptions(gptOptions, config, "gpt");

export const gptEntry = {
  options: recipe,
  presets: gptPresets,
  ofTraining: ["dropout"],
  modelTypes: ["gpt"],
  read,
  fields: ["tokens", "next"],
  create({ preset, ...given }: v.InferOutput<typeof recipe>, facts: DataFacts) {
    return new Gpt(textShape<GptShape>(gptPresets[preset], given, facts));
  },
  restore: (shape: GptShape) => new Gpt(shape),
} satisfies ModelEntry;
