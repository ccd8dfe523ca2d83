import { choose, OptionsError } from "@terse/options";
import { bertClassifierEntry, bertEntry } from "./bert/entries.ts";
import { gptEntry } from "./gpt/entry.ts";
import { gpt2Entry } from "./gpt2/entry.ts";
import type { Model, ModelEntry } from "./model.ts";
import { resnetEntry } from "./resnet/entry.ts";
import { vitEntry } from "./vit/entry.ts";

const entries = {
  gpt: gptEntry,
  gpt2: gpt2Entry,
  bert: bertEntry,
  "bert-classifier": bertClassifierEntry,
  resnet: resnetEntry,
  vit: vitEntry,
} satisfies Record<string, ModelEntry>;

export type ModelName = keyof typeof entries;

/** Every model by the name that recipes use. */
export const models: Readonly<Record<ModelName, ModelEntry>> = entries;

/** The model that a `config.json` describes, with random weights. Throws `OptionsError`. */
export function restoreModel(config: Config): Model {
  const [entry, own] = described(config);
  return entry.restore(own);
}

/** Number of elements in the parameters and buffers of the model that a `config.json` describes, without their memory. Throws `OptionsError`. */
export function countParameters(config: Config): number {
  const [entry, own] = described(config);
  return entry.count(own);
}

type Config = Readonly<Record<string, unknown>>;

/** The entry that a config.json names, by its class at Hugging Face or by its `model_type`, and what the entry reads of it. */
function described({ model_type, ...config }: Config): [ModelEntry, Config] {
  const { architectures } = config;
  const byClass = Object.values<ModelEntry>(models).find((entry) =>
    entry.architectures?.some((name) => Array.isArray(architectures) && architectures.includes(name)),
  );
  const entry: ModelEntry = byClass ?? choose("model_type", model_type as string, models);
  if (!byClass && entry.architectures)
    throw new OptionsError([
      `architectures: of ${model_type} only ${entry.architectures.join(", ")} is known here, not ${JSON.stringify(architectures ?? [])}; use other weights`,
    ]);
  return [entry, config];
}
