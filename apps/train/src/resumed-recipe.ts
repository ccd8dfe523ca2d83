/** The recipe of a run that goes on: what of it must stay, and what was changed. */
import { isObject } from "@terse/checkpoint";
import { refusedOptions } from "@terse/optimizers";
import { applyOverrides, OptionsError, parseYaml, show } from "@terse/options";
import { followingFromRounds, methodSections } from "./methods-in-run.ts";
import { checkedRecipe, parsedRecipe } from "./recipe.ts";
import type { Recipe } from "./recipe-schema.ts";
import { type Tree, withOverrides } from "./recipe-tree.ts";
import { stepsBetweenRounds } from "./steps-between-rounds.ts";

/**
 * The choices that a resumed run must keep, because its saved state depends on them, and all keys that it must keep
 * with them.
 */
const keptNames = [
  "model.name",
  "adapter.name",
  "data.name",
  "optimizer.name",
  "exchange.gradient.name",
  "local.optimizer.name",
];
const keptChoices = [...keptNames, "optimizer.groups", "local.optimizer.groups"];
const kept = ["seed", "model", "adapter", "data", ...keptChoices, "local.fragments", "local.order"];

/** What a run keeps of its messages only as long as it has local steps, or has none. */
const ofMessages = /^(local|exchange)\./;

/**
 * What a run keeps of a key: of groups only which parameters have which optimizer, of the data all but how many samples
 * may be damaged, which rows do not depend on. Takes any tree, because an override may have put anything there.
 */
function keptOf(tree: unknown, key: string): unknown {
  const value = key.split(".").reduce<unknown>((inside, part) => (inside as Tree | null | undefined)?.[part], tree);
  if (key === "data" && isObject(value))
    return Object.fromEntries(Object.entries(value).filter(([option]) => option !== "maxCorrupt"));
  if (!key.endsWith("optimizer.groups")) return value;
  const groups = value ?? [];
  const takers = (group: Tree | null) => ["name", "roles", "parameters"].map((option) => [option, group?.[option]]);
  return Array.isArray(groups) ? groups.map((group) => Object.fromEntries(takers(group))) : groups;
}

/** The result of `read`. If it throws because a choice has changed, throws the `OptionsError` that says so. */
function keepingChoices<T>(before: unknown, after: unknown, read: () => T): T {
  try {
    return read();
  } catch (error) {
    checkKept(before, after, keptChoices);
    throw error;
  }
}

/**
 * Throws `OptionsError` where a resumed run would not keep one of these keys. Of a section with another name the name
 * alone is named.
 */
function checkKept(before: unknown, after: unknown, keys: readonly string[]): void {
  const asked = sameRounds(before, after) ? keys : keys.filter((key) => !ofMessages.test(key));
  const all = asked.flatMap((key) => differences(keptOf(before, key), keptOf(after, key), [key]));
  const renamed = all.filter(({ key }) => keptNames.includes(key)).map(({ key }) => key.replace(/name$/, ""));
  const changed = all.filter(
    ({ key }) => !renamed.some((section) => key.startsWith(section) && key !== `${section}name`),
  );
  const once = new Map(changed.map((difference) => [difference.key, difference]));
  throwRefusals([...once.values()].map((difference) => ({ ...difference, why: "a resumed run keeps it" })));
}

/**
 * The recipe of a run that goes on from a save, that of the save, and the one before the overrides: that of the run's
 * recipe.json (`text`), else the save's. Throws `OptionsError` for keys and options that must stay, and for fewer steps
 * than the run has taken.
 */
export function resumedRecipe(
  save: { readonly step: number; readonly rounds?: readonly number[]; readonly recipe: unknown },
  text: string | undefined,
  overrides: readonly string[],
  run: string,
): { saved: Recipe; before: Recipe; recipe: Recipe } {
  const tree = text === undefined ? (save.recipe as Tree) : (parseYaml(text, `${run}/recipe.json`) as Tree);
  const saved = parseWritten(save.recipe, `the save of ${run}`);
  const before = parseWritten(tree, `${run}/recipe.json`);
  checkKept(saved, before, kept); // recipe.json may have been edited
  const given = withoutFollowing(tree, before);
  const recipe = keepingChoices(before, applyOverrides(tree, overrides), () =>
    checkedRecipe(parsedRecipe(withOverrides(given, overrides).tree), { from: saved, step: save.step }),
  );
  checkKept(before, recipe, kept);
  throwRefusals(refusedOptionsOf(saved, recipe, save));
  if (recipe.steps < save.step)
    throw new OptionsError([
      `steps: ${run} is saved after step ${save.step}, and a run does not go back: give --steps=${save.step} or more, or start a new run`,
    ]);
  return { saved, before, recipe };
}

/** The recipe that a run has written, without what follows from its other keys: it follows from those of now. */
function withoutFollowing(tree: Tree, recipe: Recipe): Tree {
  const following = followingFromRounds(recipe);
  if (following.length === 0) return tree;
  const exchange = tree["exchange"] as Tree;
  const gradient = Object.entries(exchange["gradient"] as Tree).filter(([option]) => !following.includes(option));
  return { ...tree, exchange: { ...exchange, gradient: Object.fromEntries(gradient) } };
}

/** The recipe that a run has written to `where`, its recipe.json. Throws `OptionsError`, as `parseWritten`. */
export const writtenRecipe = (text: string, where: string): Recipe => parseWritten(parseYaml(text, where), where);

/** A recipe that a run has written. Throws `OptionsError` that names `where`, and what may have happened to it. */
function parseWritten(tree: unknown, where: string): Recipe {
  checkTree(tree, where);
  try {
    return parsedRecipe(tree);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new OptionsError([`${where} was written by another version of terse, or changed: ${error.lines.join("; ")}`]);
  }
}

function checkTree(value: unknown, where: string): asserts value is Tree {
  if (!isObject(value))
    throw new OptionsError([`${where}: expected the keys of a recipe, such as steps: 500, got ${show(value)}`]);
}

/** Whether both recipes have local steps, or neither has. A run may begin with them, and end them, at any save. */
export const sameRounds = (before: unknown, after: unknown): boolean => hasLocal(before) === hasLocal(after);

const hasLocal = (recipe: unknown) => isObject((recipe as Tree | null | undefined)?.["local"]);

/**
 * Options of an optimizer, or of what compresses its gradients, that are kept because the state depends on them or
 * their work is done.
 */
function refusedOptionsOf(
  saved: Recipe,
  recipe: Recipe,
  { step, rounds }: { readonly step: number; readonly rounds?: readonly number[] },
): Refusal[] {
  const same = sameRounds(saved, recipe);
  const sections = (of: Recipe) => methodSections(of).filter(({ key }) => same || !ofMessages.test(key));
  const now = sections(recipe);
  const sinceRound = stepsBetweenRounds(saved, recipe, step)?.sinceRound;
  return sections(saved).flatMap(({ key, section: before, entry, every }, i) => {
    const reasons = refusedOptions(entry, {
      before,
      after: now[i]!.section,
      step: ofMessages.test(key) && rounds ? Math.max(...rounds) : Math.floor(step / every),
      sinceRound,
    });
    return differences(before, now[i]!.section, []).flatMap(({ key: option, ...values }) => {
      const why = reasons.get(option);
      return why === undefined ? [] : [{ key: `${key}.${option}`, ...values, why }];
    });
  });
}

interface Refusal extends Difference {
  readonly why: string;
}

/** Throws `OptionsError` if there are refusals. */
export function throwRefusals(refusals: readonly Refusal[]): void {
  const remedy = (from: string) => (from === none ? "leave it out" : `take ${from} again`);
  const problems = refusals.map(
    ({ key, from, to, why }) => `${key}: ${to}, and the save has ${from}: ${why}; ${remedy(from)}, or start a new run`,
  );
  if (problems.length > 0) throw new OptionsError(problems);
}

/** What is different in a recipe, a line for each key: "steps: 30 → 60". */
export const changesOf = (before: unknown, after: unknown): string[] =>
  differences(before, after, []).map(({ key, from, to }) => `${key}: ${from} → ${to}`);

interface Difference {
  readonly key: string;
  readonly from: string; // JSON, or none
  readonly to: string;
}

const none = "none";

function differences(before: unknown, after: unknown, path: readonly string[]): Difference[] {
  const isNested = (value: unknown): value is Tree => typeof value === "object" && value !== null;
  if (isNested(before) && isNested(after) && Array.isArray(before) === Array.isArray(after))
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      differences(before[key], after[key], [...path, key]),
    );
  const [from, to] = [before, after].map((value) => JSON.stringify(value) ?? none) as [string, string];
  return from === to ? [] : [{ key: path.join("."), from, to }];
}
