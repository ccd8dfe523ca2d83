import * as v from "valibot";
import {
  type AnySchema,
  branchOf,
  describe,
  entriesOf,
  isDescribed,
  isListSchema,
  isObjectSchema,
  isPlainObject,
  show,
} from "./describe.ts";
import { hint, nearest } from "./nearest.ts";
import { lineOf, OptionsError, type Problem } from "./options-error.ts";

/**
 * Checks `input` against a valibot schema and returns it with defaults. `where` is the name of what the options belong
 * to ("optimizer"); it starts every line of the error, and may be empty. undefined as input means no options.
 *
 * An unknown key is always an error, also in a plain `v.object`, except in a `v.looseObject` or `v.objectWithRest`.
 * Throws one `OptionsError` with a line per problem:
 *
 *   optimizer.beta11: unknown option; did you mean beta1? (known: lr, beta1, beta2)
 *   `optimizer.lr: expected a number > 0, got "fast"`
 */
export function parseOptions<const S extends v.GenericSchema>(
  schema: S,
  input: unknown,
  where: string,
): v.InferOutput<S> {
  const root = schema as unknown as AnySchema;
  const given = input === undefined && isObjectSchema(root) ? {} : input;
  const path = where === "" ? [] : [where];
  const result = v.safeParse(schema, given);
  const problems = new Map([...unknownKeys(root, given, path)].map((problem) => [lineOf(problem), problem]));
  const explained = new Set<string>();
  for (const issue of result.issues ?? [])
    for (const { at, sentence, whole } of explain(root, issue, path)) {
      // A value that breaks two conditions of one description is reported once.
      if (whole && explained.has(at)) continue;
      if (whole) explained.add(at);
      const problem = { path: at, problem: sentence };
      problems.set(lineOf(problem), problem);
    }
  if (problems.size > 0) throw new OptionsError([...problems.values()]);
  return result.output as v.InferOutput<S>;
}

type Path = readonly (string | number)[];

const name = (path: Path) => (path.length === 0 ? "options" : path.join("."));

/** The schema for this input: inside wrappers, and the branch of a variant or union that fits the input's shape. */
function resolve(schema: AnySchema, input: unknown): AnySchema {
  if (schema.wrapped) return resolve(schema.wrapped, input);
  if (schema.type === "lazy") return resolve(schema.getter!(input), input);
  if (schema.type === "variant") {
    const branch = isPlainObject(input) ? branchOf(schema, input) : undefined;
    return branch ? resolve(branch, input) : schema;
  }
  if (schema.type === "union") {
    const branches = (schema.options as readonly AnySchema[]).map((branch) => resolve(branch, input));
    const fitting = Array.isArray(input)
      ? branches.filter(isListSchema)
      : isPlainObject(input)
        ? branches.filter(isObjectSchema)
        : [];
    return fitting.length === 1 ? fitting[0]! : schema;
  }
  return schema;
}

const acceptsMore = (schema: AnySchema): boolean =>
  schema.type === "intersect"
    ? (schema.options as readonly AnySchema[]).some((part) => acceptsMore(part) || entriesOf(part) === undefined)
    : schema.type === "loose_object" || schema.type === "object_with_rest";

/** The schema of one key of an object or list. */
function child(schema: AnySchema, key: string | number, input: unknown): AnySchema | undefined {
  const here = resolve(schema, input);
  if (here.type === "variant" && key === here.key) {
    // No branch fits, so the discriminator is wrong: it must be one of the words of all branches.
    const words = (here.options as readonly AnySchema[]).flatMap((branch) => {
      const entry = entriesOf(branch)?.[key];
      const discriminator = entry?.wrapped ?? entry; // the default choice may be left out
      if (discriminator?.type === "picklist") return discriminator.options as string[];
      return discriminator?.type === "literal" ? [discriminator.literal as string] : [];
    });
    return v.picklist(words) as unknown as AnySchema;
  }
  const entries = entriesOf(here);
  if (entries && Object.hasOwn(entries, key)) return entries[key];
  if (here.type === "record") return here.value;
  return here.items?.[key as number] ?? here.item ?? here.rest;
}

function* unknownKeys(schema: AnySchema, input: unknown, path: Path): Generator<Problem> {
  const here = resolve(schema, input);
  if (Array.isArray(input)) {
    for (const [index, item] of input.entries()) {
      const inside = child(here, index, input);
      if (inside) yield* unknownKeys(inside, item, [...path, index]);
    }
    return;
  }
  if (!isPlainObject(input)) return;
  const entries = entriesOf(here);
  for (const key of Object.keys(input)) {
    if (entries && !Object.hasOwn(entries, key) && !acceptsMore(here))
      yield { path: name([...path, key]), problem: `unknown option${hint(key, Object.keys(entries))}` };
    const inside = child(here, key, input);
    if (inside) yield* unknownKeys(inside, input[key], [...path, key]);
  }
}

interface Explanation {
  readonly at: string;
  readonly sentence: string;
  readonly whole: boolean; // whether the sentence describes all conditions of the value
}

/**
 * One of valibot's issues as a sentence. For a union it yields the sentences of the branch that fits the input's shape.
 */
function* explain(root: AnySchema, issue: v.BaseIssue<unknown>, where: Path): Generator<Explanation> {
  if (issue.type === "strict_object" && issue.expected === "never") return; // reported by `unknownKeys`
  let schema: AnySchema | undefined = root;
  const path: (string | number)[] = [...where];
  for (const item of issue.path ?? []) {
    const key = item.key as string | number;
    path.push(key);
    schema = schema && child(schema, key, item.input);
  }

  if (issue.type === "union" && schema) {
    const branch = resolve(schema, issue.input);
    if (branch.type !== "union") {
      const inner = v.safeParse(branch, issue.input);
      for (const deeper of inner.issues ?? []) yield* explain(branch, deeper, path);
      return;
    }
  }

  const ownMessage = !issue.message.startsWith("Invalid ");
  if (ownMessage || !schema || (issue.kind === "validation" && !isDescribed(issue.type))) {
    yield { at: name(path), sentence: issue.message, whole: false };
    return;
  }
  const last = issue.path?.at(-1);
  const absent = last !== undefined && isPlainObject(last.input) && !Object.hasOwn(last.input, last.key as string);
  const expected = describe(schema, { failed: issue.type, input: issue.input });
  if (absent) {
    yield { at: name(path), sentence: `missing; expected ${expected}`, whole: true };
    return;
  }
  const decides = resolve(schema, issue.input);
  const words = decides.type === "picklist" ? (decides.options as readonly unknown[]).map(String) : [];
  const meant = typeof issue.input === "string" ? nearest(issue.input, words) : undefined;
  const isBare = decides.type === "string" && ["number", "boolean"].includes(typeof issue.input); // YAML, and not text
  const remedy = meant !== undefined ? `; did you mean ${meant}?` : isBare ? inQuotes(String(issue.input)) : "";
  yield { at: name(path), sentence: `expected ${expected}, got ${show(issue.input)}${remedy}`, whole: true };
}

const inQuotes = (text: string) => `; in quotes it is a string: "${text}", in a shell '"${text}"'`;
