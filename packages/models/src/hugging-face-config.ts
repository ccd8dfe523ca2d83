import { OptionsError, parseOptions, type v } from "@terse/options";

export type HuggingFaceConfig = Readonly<Record<string, unknown>>;

/** Keys that ask for what no model here computes, with the values that ask for nothing. */
const never = { quantization_config: null, is_encoder_decoder: false };

/** What a classifier's config.json says: the loss is the cross entropy of one class for each row. */
export const oneClassEach: HuggingFaceConfig = { problem_type: "single_label_classification" };

/**
 * Throws `OptionsError` where a key of a config.json has another value than the one that the model here computes. A
 * list has several names of that value.
 */
export function requireValues(config: HuggingFaceConfig, only: HuggingFaceConfig): void {
  const problems = Object.entries({ ...never, ...only }).flatMap(([key, value]) => {
    const known: readonly unknown[] = Array.isArray(value) ? value : [value];
    const given = config[key] ?? known[0];
    return known.includes(given)
      ? []
      : [`${key}: is ${brief(given)}, and only ${known.map(brief).join(" or ")} is known here; use other weights`];
  });
  if (problems.length > 0) throw new OptionsError(problems);
}

function brief(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** Options that were read from a config.json, checked. Throws `OptionsError` in its keys: `names` maps ours to them. */
export function checkedOptions<S extends v.GenericSchema>(
  schema: S,
  options: unknown,
  names: Readonly<Record<string, string>>,
): v.InferOutput<S> {
  try {
    return parseOptions(schema, options, "");
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw error.withPaths((path) => {
      const [key, ...inside] = path.split(".");
      return [names[key!] ?? key, ...inside].join(".");
    });
  }
}

/** The values that are there, by the names that they have here: `names` maps those to the keys of config.json. */
export function renamed(config: HuggingFaceConfig, names: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, key]) =>
      config[key] === undefined || config[key] === null ? [] : [[name, config[key]]],
    ),
  );
}

/** Options that have a value, under the keys of config.json. */
export function inKeysOf(names: Readonly<Record<string, string>>, options: object): HuggingFaceConfig {
  const values = options as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, key]) => (values[name] === undefined ? [] : [[key, values[name]]])),
  );
}

/** The classes of a classifier; two where the config does not say, as in transformers. */
export function classesOf(config: HuggingFaceConfig): number {
  const { id2label, num_labels } = config;
  if (typeof id2label === "object" && id2label !== null) return Object.keys(id2label).length;
  return typeof num_labels === "number" ? num_labels : 2;
}

/** How a config names classes: LABEL_0, LABEL_1, … where they have no names. */
export function labelsOf(classes: number, names: readonly string[] = []): HuggingFaceConfig {
  const labels = Array.from({ length: classes }, (_, i) => names[i] ?? `LABEL_${i}`);
  return {
    id2label: Object.fromEntries(labels.map((label, i) => [i, label])),
    label2id: Object.fromEntries(labels.map((label, i) => [label, i])),
  };
}
