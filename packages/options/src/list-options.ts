/** Lists what a schema takes, for help texts. */
import type * as v from "valibot";
import { type AnySchema, choiceOf, describe, isObjectSchema } from "./describe.ts";

/** An option of a schema, in words for a help text. */
export interface ListedOption {
  /** Its dotted name: `optimizer.lr`. */
  readonly name: string;
  /** What it takes, in words: "a number > 0", or the schema's own `v.description`. */
  readonly takes: string;
  /** Whether it must be given. */
  readonly required: boolean;
  /** Its default; undefined where it has none. */
  readonly fallback: unknown;
  /**
   * "optimizer.name=lion": only this choice has the option, the innermost of several. Undefined: every choice has it,
   * with the same default.
   */
  readonly only: string | undefined;
}

/**
 * Every option of a schema of groups, in the schema's order; of a `v.variant` first its choice, then what all choices
 * have in common.
 */
export function listOptions(schema: v.GenericSchema): ListedOption[] {
  return listed(schema as unknown as AnySchema, { path: [], optional: false, fallback: undefined, only: undefined });
}

interface Place {
  readonly path: readonly string[];
  readonly optional: boolean;
  readonly fallback: unknown;
  readonly only: string | undefined;
}

function listed(schema: AnySchema, place: Place): ListedOption[] {
  const { path, optional, only } = place;
  if (schema.wrapped) {
    const { default: value } = schema as { default?: unknown };
    // valibot takes the default of the outermost of several wrappers.
    const fallback = optional ? place.fallback : typeof value === "function" ? value() : value;
    return listed(schema.wrapped, { ...place, optional: true, fallback });
  }
  if (isObjectSchema(schema))
    return Object.entries(schema.entries!).flatMap(([key, entry]) =>
      listed(entry, { path: [...path, key], optional: false, fallback: undefined, only }),
    );
  if (schema.type === "variant") return choices(schema, path, only);
  return [{ name: path.join("."), takes: wordsOf(schema), required: !optional, fallback: place.fallback, only }];
}

function choices({ key, options }: AnySchema, path: readonly string[], only: string | undefined): ListedOption[] {
  const name = [...path, key].join(".");
  const branches = (options as readonly AnySchema[]).map((branch) => {
    const { word: choice, isDefault } = choiceOf(branch, key as string);
    const all = listed(branch, { path, optional: false, fallback: undefined, only: `${name}=${choice}` });
    return { choice, isDefault, all: all.filter((option) => option.name !== name) };
  });
  const sameIn = (all: readonly ListedOption[], { name, takes, fallback }: ListedOption) =>
    all.some((other) => other.name === name && other.takes === takes && equal(other.fallback, fallback));
  const common = branches[0]!.all.filter((option) => branches.every(({ all }) => sameIn(all, option)));
  const takes = `one of ${branches.map(({ choice }) => choice).join(", ")}`;
  const fallback = branches.find(({ isDefault }) => isDefault)?.choice;
  return [
    { name, takes, required: fallback === undefined, fallback, only },
    ...common.map((option) => ({ ...option, only })),
    ...branches.flatMap(({ all }) => all.filter((option) => !sameIn(common, option))),
  ];
}

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

function wordsOf(schema: AnySchema): string {
  const own = schema.pipe?.find(({ type }) => type === "description") as { description?: string } | undefined;
  return own?.description ?? describe(schema);
}
