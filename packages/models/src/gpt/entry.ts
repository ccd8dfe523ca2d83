import { oneOf, v } from "@terse/options";
import type { DataFacts, ModelEntry } from "../model.ts";
import { textShape } from "../text-shape.ts";
import { Gpt } from "./gpt.ts";
import { type GptOptions, type GptShape, gptOptions, gptPresets } from "./options.ts";

const recipe = v.object({
  preset: v.optional(oneOf(Object.keys(gptPresets) as (keyof typeof gptPresets)[]), "small"),
  // Each of these overrides the preset.
  ...v.partial(v.object(gptOptions.entries)).entries,
});

export const gptEntry = {
  options: recipe,
  fields: ["tokens", "next"],
  create({ preset, ...given }: v.InferOutput<typeof recipe>, facts: DataFacts) {
    return new Gpt(textShape<GptShape>(gptPresets[preset], given, facts));
  },
  count: (config: GptOptions) => Gpt.countParameters(config),
  restore: (config: GptOptions) => new Gpt(config),
} satisfies ModelEntry;
