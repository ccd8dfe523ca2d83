/** Describes schemas and values in words: "a number > 0", "one of plus, minus", "an integer ≥ 1". */
import * as v from "valibot";

export type Schema = v.GenericSchema;

/** The properties of valibot's schema types that are read here. Each is checked before use. */
export interface AnySchema extends Schema {
  readonly pipe?: readonly PipeItem[];
  readonly entries?: Readonly<Record<string, AnySchema>>;
  readonly wrapped?: AnySchema;
  readonly options?: readonly unknown[]; // schemas of a union, variant, intersect; words of a picklist
  readonly key?: string | AnySchema; // discriminator of a variant; key schema of a record
  readonly item?: AnySchema;
  readonly items?: readonly AnySchema[];
  readonly rest?: AnySchema;
  readonly value?: AnySchema;
  readonly literal?: unknown;
  readonly enum?: Readonly<Record<string, unknown>>;
  readonly getter?: (input: unknown) => AnySchema;
}
interface PipeItem {
  readonly kind: "schema" | "validation" | "transformation" | "metadata";
  readonly type: string;
  readonly requirement?: unknown;
}

export const isObjectSchema = (schema: AnySchema) =>
  schema.type === "object" ||
  schema.type === "strict_object" ||
  schema.type === "loose_object" ||
  schema.type === "object_with_rest";

const isOptional = ({ type }: AnySchema) => /^(optional|exact_optional|undefinedable|non_optional)$/.test(type);

export const isListSchema = (schema: AnySchema) => schema.type === "array" || /^(\w+_)?tuple(_\w+)?$/.test(schema.type);

/** The named options of an object schema or of an intersection; undefined for other schemas. */
export function entriesOf(schema: AnySchema): Readonly<Record<string, AnySchema>> | undefined {
  if (isObjectSchema(schema)) return schema.entries;
  if (schema.type !== "intersect") return undefined;
  return Object.assign({}, ...(schema.options as readonly AnySchema[]).map((part) => entriesOf(part) ?? {}));
}

/** The branch of a variant that a group of options chooses; undefined where it chooses none that exists. */
export const branchOf = ({ key, options }: AnySchema, group: Readonly<Record<string, unknown>>) =>
  (options as readonly AnySchema[]).find((branch) => {
    const discriminator = entriesOf(branch)?.[key as string];
    return discriminator !== undefined && v.is(discriminator, group[key as string]);
  });

/** The word that chooses a branch of a variant, and whether it may be left out. */
export function choiceOf(branch: AnySchema, key: string): { word: string; isDefault: boolean } {
  const { wrapped, literal } = branch.entries![key]!;
  return { word: String(wrapped?.literal ?? literal), isDefault: wrapped !== undefined };
}

export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// Flattens nested pipes such as v.pipe(v.pipe(number, finite), gtValue(0)). Steps after a transformation do not
// describe the input.
function stepsOf(schema: AnySchema): readonly PipeItem[] {
  if (!schema.pipe) return [schema as unknown as PipeItem];
  const [first, ...more] = schema.pipe;
  const end = more.findIndex((item) => item.kind === "transformation" || item.kind === "schema");
  return [...stepsOf(first as unknown as AnySchema), ...(end < 0 ? more : more.slice(0, end))];
}

/** The conditions of a pipe that `describe` describes. Any other condition is reported by its own message. */
const conditions: Readonly<Record<string, (requirement: unknown) => string>> = {
  gt_value: (limit) => `> ${limit}`,
  min_value: (limit) => `≥ ${limit}`,
  lt_value: (limit) => `< ${limit}`,
  max_value: (limit) => `≤ ${limit}`,
  multiple_of: (of) => `that is a multiple of ${of}`,
  non_empty: () => "that is not empty",
  length: (length) => `of length ${length}`,
  min_length: (length) => `of length ≥ ${length}`,
  max_length: (length) => `of length ≤ ${length}`,
  regex: (pattern) => `that matches ${pattern}`,
};
const inTheNoun = new Set(["integer", "safe_integer", "finite"]);

/** Whether the description of a schema includes this condition. */
export const isDescribed = (condition: string) => condition in conditions || inTheNoun.has(condition);

/**
 * What a schema accepts, in words that follow "expected". With `rejected`, also mentions the rare condition that
 * failed.
 */
export function describe(schema: AnySchema, rejected?: { failed: string; input: unknown }): string {
  if (isOptional(schema)) return describe(schema.wrapped!, rejected);
  const [base, ...steps] = stepsOf(schema);
  const has = (type: string) => steps.some((step) => step.type === type);
  const words = steps.filter((step) => step.type in conditions).map((step) => conditions[step.type]!(step.requirement));
  let noun = nounOf(base as unknown as AnySchema);
  if (has("integer") || has("safe_integer")) {
    noun = "an integer";
    if (rejected?.failed === "safe_integer" && Number.isInteger(rejected.input)) words.push("within ±(2^53 − 1)");
  } else if (rejected?.failed === "finite") noun = "a finite number";
  return words.length === 0 ? noun : `${noun} ${words.join(" and ")}`;
}

const nouns: Readonly<Record<string, string>> = {
  number: "a number",
  string: "a string",
  boolean: "true or false",
  function: "a function",
};

function nounOf(schema: AnySchema): string {
  const noun = nouns[schema.type];
  if (noun !== undefined) return noun;
  switch (schema.type) {
    case "literal":
      return show(schema.literal);
    case "picklist":
    case "enum":
      return `one of ${(schema.options as readonly unknown[]).join(", ")}`;
    case "nullable":
    case "nullish":
      return `${describe(schema.wrapped!)} or null`;
    case "array":
      return `a list (each ${describe(schema.item!)})`;
    case "record":
      return `a group of names, each with ${describe(schema.value!)}`;
    case "union":
      return [...new Set((schema.options as readonly AnySchema[]).map((option) => describe(option)))].join(" or ");
    case "variant":
      return `a group of options with ${schema.key}`;
  }
  if (schema.items) {
    const items = schema.items.map((item) => describe(item));
    const same = items.every((item) => item === items[0]);
    return same ? `a list of ${items.length} (each ${items[0]})` : `a list of ${items.length} (${items.join(", ")})`;
  }
  if (isObjectSchema(schema)) return `a group of options (${Object.keys(schema.entries!).join(", ")})`;
  return schema.expects;
}

/** A value as it may be written in a recipe, shortened if it is long. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return value.length > 8 ? `a list of ${value.length}` : `[${value.map(show).join(", ")}]`;
  if (isPlainObject(value)) {
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) return `a ${prototype.constructor?.name ?? "object"}`;
    const keys = Object.keys(value);
    return `{ ${keys.slice(0, 5).join(", ")}${keys.length > 5 ? ", …" : ""} }`;
  }
  return String(value);
}
