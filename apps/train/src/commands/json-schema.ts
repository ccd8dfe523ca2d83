/** A recipe's schema as JSON Schema (draft 2020-12), with which editors complete and check YAML files. */
import type { v } from "@terse/options";

/** What is read here of valibot's schemas. */
interface Schema {
  readonly type: string;
  readonly pipe?: readonly { readonly type: string; readonly requirement?: unknown }[];
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly wrapped?: Schema;
  readonly options?: readonly unknown[];
  readonly key?: string;
  readonly item?: Schema;
  readonly items?: readonly Schema[];
  readonly literal?: unknown;
}

type Json = Readonly<Record<string, unknown>>;

/** `sentences`: one for each dotted key. A key that this cannot describe takes anything. */
export function jsonSchema(schema: v.GenericSchema, sentences: ReadonlyMap<string, string>): Json {
  const root = schema as unknown as Schema;
  const own = converted(root, [], sentences) as { properties: Json };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "a recipe of terse",
    ...own,
    properties: { extends: { type: "string", description: "A recipe that this one changes." }, ...own.properties },
    required: undefined, // the command line may have what a file lacks
    if: { required: ["extends"] },
    else: named(root),
  };
}

/** That each section says which entry it chooses, or takes the one that needs no name. Where a recipe extends another, that one may have chosen. */
function named(schema: Schema): Json {
  if (schema.wrapped) return named(schema.wrapped);
  if (schema.type === "variant") return namedChoice(schema);
  const entries = Object.entries(schema.entries ?? {}).map(([key, entry]) => [key, named(entry)] as const);
  const sections = entries.filter(([, entry]) => Object.keys(entry).length > 0);
  return sections.length === 0 ? {} : { properties: Object.fromEntries(sections) };
}

function namedChoice({ key, options }: Schema): Json {
  const isNamed = { required: [key] };
  const unnamed = (options as Schema[]).find(({ entries }) => entries![key!]!.wrapped);
  return unnamed ? { anyOf: [isNamed, { propertyNames: { enum: Object.keys(unnamed.entries!) } }] } : isNamed;
}

function converted(schema: Schema, path: readonly string[], sentences: ReadonlyMap<string, string>): Json {
  if (schema.wrapped) {
    const { default: fallback } = schema as { default?: unknown };
    const isPlain = fallback !== undefined && typeof fallback !== "function" && typeof fallback !== "object";
    const inner = converted(schema.wrapped, path, sentences);
    // null takes back the choice of an extended recipe, as of exchange.gradient.
    if (fallback === undefined && schema.wrapped.type === "variant")
      return { ...inner, oneOf: [...(inner["oneOf"] as Json[]), { type: "null" }] };
    return { ...inner, ...(isPlain && { default: fallback }) };
  }
  const sentence = sentences.get(path.join("."));
  return { ...(sentence !== undefined && { description: sentence }), ...bare(schema, path, sentences) };
}

function bare(schema: Schema, path: readonly string[], sentences: ReadonlyMap<string, string>): Json {
  const inner = (each: unknown, key?: string) =>
    converted(each as Schema, key === undefined ? path : [...path, key], sentences);
  switch (schema.type) {
    case "object":
    case "strict_object": {
      const entries = Object.entries(schema.entries!);
      return {
        type: "object",
        properties: Object.fromEntries(entries.map(([key, entry]) => [key, inner(entry, key)])),
        required: entries.filter(([, entry]) => entry.wrapped === undefined).map(([key]) => key),
        additionalProperties: false,
      };
    }
    case "variant":
      return choice(
        schema.options!.map((each) => inner(each) as Branch),
        schema.key!,
      );
    case "union":
      return { anyOf: schema.options!.map((each) => inner(each)) };
    case "picklist":
      return { enum: schema.options };
    case "literal":
      return { const: schema.literal };
    case "array":
      return { type: "array", items: { ...inner(schema.item), ...named(schema.item!) } };
    case "number":
      return number(schema);
    case "string":
    case "boolean":
      return { type: schema.type };
    default:
      return {};
  }
}

type Branch = Json & { readonly properties: Readonly<Record<string, Json>> };

/**
 * One of the branches by its `key`; or without that any options of theirs, which change those of the branch that an extended recipe has chosen.
 * Nothing else is required, because that recipe may have the rest.
 */
function choice(branches: readonly Branch[], key: string): Json {
  const options = branches.flatMap(({ properties }) => Object.entries(properties).filter(([name]) => name !== key));
  const forms = Object.entries(Object.groupBy(options, ([name]) => name)).map(([name, all]) => {
    const different = new Map(all!.map(([, form]) => [JSON.stringify(form), form]));
    return [name, different.size === 1 ? all![0]![1] : { anyOf: [...different.values()] }];
  });
  return {
    oneOf: [
      ...branches.map((branch) => ({ ...branch, required: [key] })),
      { type: "object", properties: Object.fromEntries(forms), additionalProperties: false },
    ],
  };
}

function number({ pipe = [] }: Schema): Json {
  const steps = flat(pipe);
  const limit = (type: string) => steps.find((step) => step.type === type)?.requirement;
  const keywords = {
    minimum: "min_value",
    maximum: "max_value",
    exclusiveMinimum: "gt_value",
    exclusiveMaximum: "lt_value",
  };
  const limits = Object.entries(keywords).filter(([, type]) => typeof limit(type) === "number");
  return {
    type: steps.some(({ type }) => type === "integer" || type === "safe_integer") ? "integer" : "number",
    ...Object.fromEntries(limits.map(([keyword, type]) => [keyword, limit(type)])),
  };
}

/** The steps of a pipe, also of those inside it. */
const flat = (pipe: NonNullable<Schema["pipe"]>): NonNullable<Schema["pipe"]> =>
  pipe.flatMap((step, i) => (i === 0 && (step as Schema).pipe ? flat((step as Schema).pipe!) : [step]));
