/**
 * What config.json says besides what the model computes: the names of classes, and which tokens begin and end a text. A
 * run gets them from its initial weights, and the names of classes from its data. Its saves keep them.
 */
import type { Config } from "@terse/checkpoint";
import type { Dataset } from "@terse/data";
import { labelsOf } from "@terse/models";
import { OptionsError } from "@terse/options";

const ofClasses = ["id2label", "label2id"];
const ofTokens = ["bos", "eos", "pad", "unk", "sep", "cls", "mask"].map((kind) => `${kind}_token_id`);

/**
 * The meanings in the config.json of other weights, or of a save. Another head has other classes, and another tokenizer
 * other tokens.
 */
export const meaningsIn = (config: Config, { classes, tokens }: { classes: boolean; tokens: boolean }): Config =>
  Object.fromEntries(
    [...(classes ? ofClasses : []), ...(tokens ? ofTokens : [])].flatMap((key) =>
      key in config ? [[key, config[key]]] : [],
    ),
  );

/** A model's config with these meanings, if it has the form of Hugging Face, and with the data's names of classes. */
export function withMeanings(config: Config, meanings: Config, classNames: readonly string[] = []): Config {
  if (!("architectures" in config)) return config;
  const count = (labels: unknown) => (typeof labels === "object" ? Object.keys(labels ?? {}).length : 0);
  const classes = count(config["id2label"]);
  const { id2label, label2id: _, ...others } = meanings;
  if (classes === 0) return { ...config, ...others };
  const named = classNames.length > 0 && classNames.length <= classes ? labelsOf(classes, classNames) : undefined;
  const before = count(id2label) === classes ? labelsOf(classes, Object.values(id2label as object).map(String)) : {};
  return { ...config, ...others, ...(named ?? before) };
}

/** Throws `OptionsError` where the data numbers classes of the model in another order. */
export function checkClassNames(
  { id2label }: Config,
  { classNames = [] }: Pick<Dataset, "classNames">,
  otherwise = "",
): void {
  const known = Object.values((id2label ?? {}) as object).map(String);
  if (!classNames.every((name) => known.includes(name))) return; // they have other words for them
  const wrong = classNames.findIndex((name, i) => known[i] !== name);
  if (wrong >= 0)
    throw new OptionsError([
      `data: ${classNames[wrong]} is class ${wrong} there, and class ${known.indexOf(classNames[wrong]!)} of the model; give the data a folder, or a label, for each class of the model${otherwise}`,
    ]);
}
