import * as v from "valibot";
import { type AnySchema, branchOf, choiceOf, isObjectSchema, isPlainObject } from "./describe.ts";

type Tree = Readonly<Record<string, unknown>>;

/** Options that were dropped, because they were written for another entry than their group chooses now. */
export interface DroppedOptions {
  readonly group: string; // its dotted name: "optimizer", "optimizer.groups.0"
  readonly key: string; // the one that chooses: "name"
  readonly from: string; // what it chose before
  readonly to: string;
  readonly options: readonly string[];
}

/**
 * `after` is `before` with changes. Where a group of a `v.variant` chooses another entry in it, this drops the options
 * that the group had before and that the new entry does not take: they were written for the old one. What a change has
 * given itself stays, and so does what the old entry does not take either, so that `parseOptions` refuses it. `given`:
 * the dotted names of the changes. `sharingNothing`: groups whose entries give the same names other meanings; there the
 * options of the old entry are dropped although the new one takes them. Changes neither tree.
 */
export function dropUntaken(
  schema: v.GenericSchema,
  {
    before,
    after,
    given,
    sharingNothing = [],
  }: {
    readonly before: Tree;
    readonly after: Tree;
    readonly given: readonly string[];
    readonly sharingNothing?: readonly string[];
  },
): { tree: Tree; dropped: DroppedOptions[] } {
  const dropped: DroppedOptions[] = [];
  const isGiven = (name: string) => given.some((each) => isWithin(name, each) || isWithin(each, name));
  const inside = (schema: AnySchema | undefined, from: unknown, to: unknown, path: readonly string[]): unknown => {
    if (schema === undefined || from === to) return to;
    if (schema.wrapped) return inside(schema.wrapped, from, to, path);
    if (schema.item && Array.isArray(from) && Array.isArray(to))
      return to.map((each, i) => inside(schema.item, from[i], each, [...path, `${i}`]));
    if (!isPlainObject(from) || !isPlainObject(to)) return to;
    const branch = schema.type === "variant" ? branchOf(schema, to) : schema;
    if (branch === undefined || !isObjectSchema(branch)) return to;
    const kept = schema.type === "variant" ? withoutUntaken(schema, from, to, path) : to;
    return Object.fromEntries(
      Object.entries(kept).map(([key, value]) => [key, inside(branch.entries![key], from[key], value, [...path, key])]),
    );
  };
  const withoutUntaken = (schema: AnySchema, from: Tree, to: Tree, path: readonly string[]): Tree => {
    const key = schema.key as string;
    const [old, now] = [branchOf(schema, from), branchOf(schema, to)!];
    if (old === undefined || old === now) return to;
    const takes = (branch: AnySchema, option: string, value: unknown) => {
      const entry = branch.entries![option];
      return entry !== undefined && v.is(entry, value);
    };
    const keepsNothing = sharingNothing.includes(path.join("."));
    const options = Object.keys(to).filter(
      (option) =>
        option !== key &&
        Object.hasOwn(from, option) &&
        !isGiven([...path, option].join(".")) &&
        (keepsNothing || !takes(now, option, to[option])) &&
        takes(old, option, to[option]),
    );
    if (options.length === 0) return to;
    const [before, after] = [old, now].map((branch) => choiceOf(branch, key).word) as [string, string];
    dropped.push({ group: path.join("."), key, from: before, to: after, options });
    return Object.fromEntries(Object.entries(to).filter(([option]) => !options.includes(option)));
  };
  const tree = inside(schema as unknown as AnySchema, before, after, []) as Tree;
  return { tree, dropped };
}

/** Whether a dotted name is another one, or below it. */
const isWithin = (name: string, group: string) => name === group || name.startsWith(`${group}.`);
