import { choose, OptionsError } from "@terse/options";
import { withDevice } from "@terse/tensor";
import { bertClassifierEntry, bertEntry } from "./bert/entries.ts";
import { gptEntry } from "./gpt/entry.ts";
import { gpt2Entry } from "./gpt2/entry.ts";
import { llamaEntry } from "./llama/entry.ts";
import type { Model, ModelEntry } from "./model.ts";
import { resnetEntry } from "./resnet/entry.ts";
import { vitEntry } from "./vit/entry.ts";

const entries = {
  gpt: gptEntry,
  gpt2: gpt2Entry,
  llama: llamaEntry,
  bert: bertEntry,
  "bert-classifier": bertClassifierEntry,
  resnet: resnetEntry,
  vit: vitEntry,
} satisfies Record<string, ModelEntry>;

/** The name of a model in recipes: "gpt", "vit", … */
export type ModelName = keyof typeof entries;

/** Every model by the name that recipes use. */
export const models: Readonly<Record<ModelName, ModelEntry>> = entries;

type Config = Readonly<Record<string, unknown>>;

/** The model that a `config.json` describes, with random weights and some options changed. Throws `OptionsError`. */
export function restoreModel(config: Config, changed: object = {}): Model {
  const entry = entryOf(config);
  return entry.restore({ ...entry.read(config), ...changed });
}

/** Elements in the parameters and buffers of a model of options that were read. Takes no memory. */
export function countElements({ restore }: ModelEntry, options: object): number {
  const model = withDevice("meta", () => restore(options));
  const count = model.stateDict().reduce((sum, [, { length }]) => sum + Number(length), 0); // a bigint from 2^53 on
  model.dispose();
  return count;
}

/**
 * The names of the models that can start from the weights beside a `config.json`: first the one that it describes, then
 * those that differ in their head. Throws `OptionsError` where there is none.
 */
export function modelsFor(config: Config): ModelName[] {
  const same = ofType(config);
  const first = isHeadless(config) ? [] : [entryOf(config)];
  const others = same.map(([, entry]) => entry).filter((entry) => !first.includes(entry));
  return [...first, ...others].map(
    (entry) => Object.entries(models).find(([, each]) => each === entry)![0] as ModelName,
  );
}

/** Whether a `config.json` describes a model without a head. */
export const isHeadless = (config: Config): boolean =>
  ofType(config).some(([, entry]) => isClassOf(config, entry.baseArchitectures));

const ofType = ({ model_type: type }: Config) =>
  Object.entries(models).filter(([name, { modelTypes }]) => name === type || modelTypes.some((each) => each === type));

const isClassOf = ({ architectures }: Config, names: readonly string[] = []) =>
  Array.isArray(architectures) && architectures.some((name) => names.includes(name as string));

/** The entry that a config.json names, by its class at Hugging Face or by its `model_type`. */
function entryOf(config: Config): ModelEntry {
  const { model_type, architectures } = config;
  const byClass = Object.entries(models).find(([, { architectures }]) => isClassOf(config, architectures));
  if (byClass) {
    const [name, entry] = byClass;
    const types = [...new Set([...entry.modelTypes, name])];
    if (model_type === undefined || model_type === null || types.includes(model_type as string)) return entry;
    throw new OptionsError([
      `model_type: is ${JSON.stringify(model_type)}, and ${JSON.stringify(architectures)} are classes of ${types.join(", ")}; use other weights`,
    ]);
  }
  const types = Object.values(models).flatMap((entry) => entry.modelTypes.map((type) => [type, entry] as const));
  const known = { ...Object.fromEntries(types), ...models };
  if (model_type === undefined || model_type === null)
    throw new OptionsError([`model_type: is missing, and tells the model: one of ${Object.keys(known).join(", ")}`]);
  const entry = choose("model_type", model_type as string, known);
  const classes = [...new Set(ofType(config).flatMap(([, each]) => each.architectures ?? []))];
  const isOnlyOne = ofType(config).length === 1 && (architectures ?? undefined) === undefined;
  if (classes.length > 0 && !isOnlyOne)
    throw new OptionsError([
      `architectures: of ${model_type} only ${classes.join(", ")} is known here, not ${JSON.stringify(architectures ?? [])}; use other weights`,
    ]);
  return entry;
}
