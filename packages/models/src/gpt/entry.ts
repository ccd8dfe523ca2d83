import { oneOf, parseOptions, v } from "@terse/options";
import type { DataFacts, ModelEntry } from "../model.ts";
import { textShape } from "../text-shape.ts";
import { Gpt } from "./gpt.ts";
import { type GptOptions, type GptShape, gptOptions, gptPresets } from "./options.ts";

const recipe = v.object({
  preset: v.optional(oneOf(Object.keys(gptPresets) as (keyof typeof gptPresets)[]), "small"),
  // Each of these overrides the preset.
  ...v.partial(v.object(gptOptions.entries)).entries,
});

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
  count: (shape: GptShape) => Gpt.countParameters(shape),
  restore: (shape: GptShape) => new Gpt(shape),
} satisfies ModelEntry;
