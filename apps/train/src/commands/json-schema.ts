/**
 * A recipe's schema as JSON Schema (draft 2020-12), with which editors complete and check YAML files. Where a recipe
 * has a choice, `if` and `then` select the branch that it has chosen. A bare `anyOf` would report one wrong key as a
 * recipe that fits nothing.
 */
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
  const recipe = new Converter(sentences);
  const own = recipe.converted(root, []) as { properties: Json };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "a recipe of terse",
    ...own,
    properties: { extends: { type: "string", description: "A recipe that this one changes." }, ...own.properties },
    required: undefined, // the command line may have what a file lacks
    ...when({ required: ["extends"] }, recipe.withoutName(root, [], "any"), recipe.withoutName(root, [], "default")),
    $defs: Object.fromEntries(recipe.definitions),
  };
}

/**
 * What a section without its name takes: any options where a recipe extends another; otherwise those of the entry that
 * needs no name, if there is one.
 */
type Unnamed = "any" | "default";

class Converter {
  /** The schemas of the sections' entries, by their keys: "optimizer.name=lion". */
  readonly definitions = new Map<string, Json>();
  readonly #sentences: ReadonlyMap<string, string>;

  constructor(sentences: ReadonlyMap<string, string>) {
    this.#sentences = sentences;
  }

  converted(schema: Schema, path: readonly string[]): Json {
    if (!schema.wrapped) return this.#described(path, this.#bare(schema, path));
    const { default: fallback } = schema as { default?: unknown };
    const inner = this.converted(schema.wrapped, path);
    // null undoes the choice of an extended recipe, as for exchange.gradient.
    if (fallback === undefined && schema.wrapped.type === "variant") return { ...inner, type: ["object", "null"] };
    const isPlain = fallback !== undefined && typeof fallback !== "function" && typeof fallback !== "object";
    return { ...inner, ...(isPlain && { default: fallback }) };
  }

  /** The rules for sections of a schema that do not say which entry they choose. */
  withoutName(schema: Schema, path: readonly string[], unnamed: Unnamed): Json {
    if (schema.wrapped) return this.withoutName(schema.wrapped, path, unnamed);
    if (schema.type === "variant")
      return when({ type: "object", properties: { [schema.key!]: false } }, this.#unnamed(schema, path, unnamed));
    const entries = Object.entries(schema.entries ?? {}).map(
      ([key, entry]) => [key, this.withoutName(entry, [...path, key], unnamed)] as const,
    );
    const sections = entries.filter(([, entry]) => Object.keys(entry).length > 0);
    return sections.length === 0 ? {} : { properties: Object.fromEntries(sections) };
  }

  #unnamed(schema: Schema, path: readonly string[], unnamed: Unnamed): Json {
    const needsNone = branchesOf(schema).find(({ entries }) => entries[schema.key!]!.wrapped);
    if (unnamed === "default") return needsNone ? this.#branch(schema, needsNone, path) : { required: [schema.key] };
    const options = branchesOf(schema).flatMap((branch) => {
      const { properties } = this.#object(branch, path) as { properties: Readonly<Record<string, Json>> };
      return Object.entries(properties).filter(([name]) => name !== schema.key);
    });
    const forms = Object.entries(Object.groupBy(options, ([name]) => name)).map(([name, all]) => {
      const different = new Map(all!.map(([, form]) => [JSON.stringify(form), form]));
      return [name, this.#described([...path, name], oneOfThese([...different.values()]))];
    });
    return this.#defined(path.join("."), { properties: Object.fromEntries(forms), additionalProperties: false });
  }

  #described(path: readonly string[], form: Json): Json {
    const sentence = this.#sentences.get(path.join("."));
    return { ...(sentence !== undefined && { description: sentence }), ...form };
  }

  #bare(schema: Schema, path: readonly string[]): Json {
    switch (schema.type) {
      case "object":
      case "strict_object":
        return {
          ...this.#object(schema, path),
          required: Object.entries(schema.entries!).flatMap(([key, { wrapped }]) => (wrapped ? [] : [key])),
        };
      case "variant":
        return this.#choice(schema, path);
      case "union":
        return oneOfThese(schema.options!.map((each) => this.converted(each as Schema, path)));
      case "picklist":
        return { enum: schema.options };
      case "literal":
        return { const: schema.literal };
      case "array":
        return { type: "array", items: this.#item(schema.item!, path) };
      case "tuple": {
        const items = schema.items!.map((each) => this.converted(each, path));
        return { type: "array", prefixItems: items, minItems: items.length, items: false };
      }
      case "number":
        return number(schema);
      case "string":
        return string(schema);
      case "boolean":
        return { type: "boolean" };
      default:
        return {};
    }
  }

  /** An entry of a list must name its choice: no recipe below it can have chosen. */
  #item(item: Schema, path: readonly string[]): Json {
    if (item.type !== "variant") return this.converted(item, path);
    const name = path.join(".");
    if (this.definitions.has(name)) return reference(name);
    return this.#defined(name, { ...this.#choice(item, path), required: [item.key] });
  }

  #object(schema: Schema, path: readonly string[]): Json {
    const properties = Object.entries(schema.entries!).map(([key, entry]) => [
      key,
      this.converted(entry, [...path, key]),
    ]);
    return { type: "object", properties: Object.fromEntries(properties), additionalProperties: false };
  }

  /**
   * One of the branches, by its name. Nothing else is required: an extended recipe or the command line may give the
   * rest.
   */
  #choice(schema: Schema, path: readonly string[]): Json {
    const key = schema.key!;
    const branches = branchesOf(schema).map(
      (branch) => [nameOf(branch, key), this.#branch(schema, branch, path)] as const,
    );
    const unnamed = branchesOf(schema).find(({ entries }) => entries[key]!.wrapped);
    const name = { enum: branches.map(([name]) => name), ...(unnamed && { default: nameOf(unnamed, key) }) };
    return {
      type: "object",
      properties: { [key]: this.#described([...path, key], name) },
      allOf: branches.map(([name, branch]) =>
        when({ type: "object", properties: { [key]: { const: name } }, required: [key] }, branch),
      ),
    };
  }

  #branch({ key }: Schema, branch: Schema, path: readonly string[]): Json {
    const name = [...path, `${key}=${nameOf(branch, key!)}`].join(".");
    return this.definitions.has(name) ? reference(name) : this.#defined(name, this.#object(branch, path));
  }

  #defined(name: string, form: Json): Json {
    this.definitions.set(name, form);
    return reference(name);
  }
}

const when = (condition: Json, then: Json, otherwise?: Json): Json => ({ if: condition, then, else: otherwise });

const reference = (name: string): Json => ({ $ref: `#/$defs/${name}` });

type Branch = Schema & { readonly entries: Readonly<Record<string, Schema>> };

const branchesOf = ({ options }: Schema) => options as readonly Branch[];

const nameOf = ({ entries }: Schema, key: string) => (entries![key]!.wrapped ?? entries![key]!).literal;

/** Any of these forms. A value's JSON type selects the forms of that type. */
function oneOfThese(forms: readonly Json[]): Json {
  const ofTypes = Map.groupBy(forms, typeOf);
  if (forms.length === 1 || ofTypes.has(undefined)) return forms.length === 1 ? forms[0]! : {};
  const words = forms.flatMap((form) => (form["enum"] as readonly unknown[] | undefined) ?? form["const"] ?? []);
  if (ofTypes.size === 1) return sameType([...ofTypes.values()][0]!);
  return {
    type: [...ofTypes.keys()],
    ...(words.length > 0 && { examples: words }), // editors complete them
    allOf: [...ofTypes].map(([type, all]) => when({ type }, sameType(all))),
  };
}

function typeOf({ type, enum: words, const: word }: Json): string | undefined {
  if (type !== undefined) return type === "integer" ? "number" : String(type);
  const [example] = (words as readonly unknown[] | undefined) ?? [word];
  return example === undefined ? undefined : typeof example;
}

/**
 * Tells forms of one type apart by what only one of them has: a key of a group, the first entry of a list, whole
 * numbers.
 */
function sameType(forms: readonly Json[]): Json {
  if (forms.length === 1) return forms[0]!;
  return groups(forms) ?? lists(forms) ?? numbers(forms) ?? { anyOf: forms };
}

function groups(forms: readonly Json[]): Json | undefined {
  const needed = forms.map(({ required }) => (required as readonly string[] | undefined)?.slice(0, 1) ?? []);
  if (new Set(needed.flat()).size < forms.length) return undefined;
  return {
    anyOf: needed.map((required) => ({ required })),
    allOf: forms.map((form, i) => when({ required: needed[i] }, form)),
  };
}

function lists(forms: readonly Json[]): Json | undefined {
  const first = forms.map(({ prefixItems, items }) => (prefixItems as readonly Json[] | undefined)?.[0] ?? items);
  const types = first.map((item) => (item === undefined ? undefined : typeOf(item as Json)));
  if (types.includes(undefined) || new Set(types).size < forms.length) return undefined;
  return {
    prefixItems: [{ type: types }],
    allOf: forms.map((form, i) => when({ prefixItems: [{ type: types[i] }] }, form)),
  };
}

function numbers(forms: readonly Json[]): Json | undefined {
  const [whole, ...more] = forms.filter(({ type }) => type === "integer");
  const [other, ...others] = forms.filter(({ type }) => type === "number");
  if (!whole || !other || more.length + others.length > 0) return undefined;
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = other as Readonly<Record<string, number>>;
  const isBetweenWhole =
    minimum === undefined && maximum === undefined && exclusiveMinimum === 0 && exclusiveMaximum === 1;
  return isBetweenWhole ? when({ type: "integer" }, whole, other) : undefined;
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

function string({ pipe = [] }: Schema): Json {
  const steps = flat(pipe);
  const pattern = steps.find(({ type }) => type === "regex")?.requirement as RegExp | undefined;
  return {
    type: "string",
    ...(steps.some(({ type }) => type === "non_empty") && { minLength: 1 }),
    ...(pattern?.flags === "" && { pattern: pattern.source }),
  };
}

/** The steps of a pipe, also of those inside it. */
const flat = (pipe: NonNullable<Schema["pipe"]>): NonNullable<Schema["pipe"]> =>
  pipe.flatMap((step, i) => (i === 0 && (step as Schema).pipe ? flat((step as Schema).pipe!) : [step]));
