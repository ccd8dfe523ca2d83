import { OptionsError, positiveInteger, v } from "@terse/options";
import { classesOf, type HuggingFaceConfig, oneClassEach, requireValues } from "../hugging-face-config.ts";
import type { DataFacts, ModelEntry } from "../model.ts";
import { presetOptions } from "../preset-options.ts";
import { textShape } from "../text-shape.ts";
import { Bert, bertArchitecture } from "./bert.ts";
import { BertClassifier, type BertClassifierOptions, bertClassifierArchitecture } from "./bert-classifier.ts";
import { fromConfig } from "./config.ts";
import { type BertShape, bertOptions, bertPresets } from "./options.ts";

const recipe = presetOptions(bertPresets, "base", bertOptions);

const classifierRecipe = v.object({
  ...recipe.entries,
  classes: v.optional(positiveInteger), // those of the data if absent
});

const ofBoth = {
  presets: bertPresets,
  ofTraining: ["dropout", "attentionDropout"],
  adapterTargets: ["query", "value"],
  modelTypes: ["megatron-bert"],
  baseArchitectures: ["MegatronBertModel"],
};

function classifierFromConfig(config: HuggingFaceConfig): BertClassifierOptions {
  requireValues(config, oneClassEach);
  return { ...fromConfig(config), classes: classesOf(config) };
}

export const bertEntry = {
  options: recipe,
  ...ofBoth,
  read: fromConfig,
  fields: ["tokens", "segments", "mask", "labels", "nextSentence"],
  architectures: [bertArchitecture],
  create({ preset, ...given }: v.InferOutput<typeof recipe>, facts: DataFacts) {
    return new Bert(textShape(bertPresets[preset], given, facts));
  },
  restore: (shape: BertShape) => new Bert(shape),
} satisfies ModelEntry;

export const bertClassifierEntry = {
  options: classifierRecipe,
  ...ofBoth,
  ofData: ["classes"],
  read: classifierFromConfig,
  fields: ["tokens", "segments", "mask", "labels"],
  architectures: [bertClassifierArchitecture],
  create({ preset, classes, ...given }: v.InferOutput<typeof classifierRecipe>, facts: DataFacts) {
    const wanted = classes ?? facts.classes;
    if (wanted === undefined)
      throw new OptionsError(["model.classes: the data has no classes; give their number, or take data with classes"]);
    if (wanted < (facts.classes ?? 0))
      throw new OptionsError([
        `model.classes: the data has ${facts.classes} classes, the model only ${wanted}; leave model.classes out, or give ${facts.classes} or more`,
      ]);
    return new BertClassifier({ ...textShape(bertPresets[preset], given, facts), classes: wanted });
  },
  restore: (options: BertClassifierOptions) => new BertClassifier(options),
} satisfies ModelEntry;
