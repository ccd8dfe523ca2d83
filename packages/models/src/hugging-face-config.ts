import { OptionsError } from "@terse/options";

export type HuggingFaceConfig = Readonly<Record<string, unknown>>;

/** Throws `OptionsError` where a config.json has another value for a key than the only one that the model here computes. */
export function requireValues(config: HuggingFaceConfig, only: HuggingFaceConfig): void {
  const problems = Object.entries(only).flatMap(([key, value]) => {
    const given = config[key] ?? value;
    return given === value
      ? []
      : [`${key}: is ${JSON.stringify(given)}, and only ${JSON.stringify(value)} is known here; use other weights`];
  });
  if (problems.length > 0) throw new OptionsError(problems);
}

/** The values that are there, by the names that they have here: `names` maps those to the keys of config.json. */
export function renamed(config: HuggingFaceConfig, names: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, key]) =>
      config[key] === undefined || config[key] === null ? [] : [[name, config[key]]],
    ),
  );
}

/** The classes of a classifier; two where the config does not say, as in transformers. */
export function classesOf(config: HuggingFaceConfig): number {
  const { id2label, num_labels } = config;
  if (typeof id2label === "object" && id2label !== null) return Object.keys(id2label).length;
  return typeof num_labels === "number" ? num_labels : 2;
}

/** How a config names classes: LABEL_0, LABEL_1, … */
export function labelsOf(classes: number): HuggingFaceConfig {
  const labels = Array.from({ length: classes }, (_, i) => `LABEL_${i}`);
  return {
    id2label: Object.fromEntries(labels.map((label, i) => [i, label])),
    label2id: Object.fromEntries(labels.map((label, i) => [label, i])),
  };
}
