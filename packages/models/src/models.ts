import { choose, OptionsError, oneOf, v } from "@terse/options";
import { Gpt } from "./gpt/gpt.ts";
import { type GptOptions, gptOptions, gptPresets } from "./gpt/options.ts";
import type { Model, ModelEntry } from "./model.ts";

const gptRecipe = v.object({
  preset: v.optional(oneOf(Object.keys(gptPresets) as (keyof typeof gptPresets)[]), "small"),
  // Each of these overrides the preset.
  ...v.partial(v.object(gptOptions.entries)).entries,
});

const entries = {
  gpt: {
    options: gptRecipe,
    fields: ["tokens", "next"],
    create({ preset, ...given }: v.InferOutput<typeof gptRecipe>, { vocabulary = 0, length }) {
      const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      const shape = { ...gptPresets[preset], ...(length !== undefined && { context: length }), ...chosen };
      if (shape.vocabulary < vocabulary)
        throw new OptionsError([
          `model.vocabulary: the data has ${vocabulary} tokens, the model only ${shape.vocabulary}; choose ${vocabulary} or more`,
        ]);
      return new Gpt(shape);
    },
    count: (config: GptOptions) => Gpt.countParameters(config),
    restore: (config: GptOptions) => new Gpt(config),
  },
} satisfies Record<string, ModelEntry>;

export type ModelName = keyof typeof entries;

/** Every model by the name that recipes use. */
export const models: Readonly<Record<ModelName, ModelEntry>> = entries;

/** The model that a `config.json` describes, with random weights. Throws `OptionsError`. */
export function restoreModel({ model_type, ...config }: Readonly<Record<string, unknown>>): Model {
  return choose("model_type", model_type as string, models).restore(config);
}

/** Number of parameters of the model that a `config.json` describes, without making it. Throws `OptionsError`. */
export function countParameters({ model_type, ...config }: Readonly<Record<string, unknown>>): number {
  return choose("model_type", model_type as string, models).count(config);
}
