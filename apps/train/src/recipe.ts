/** Recipes: read, checked, and with all defaults filled in. */
import { isObject } from "@terse/checkpoint";
import { datasets } from "@terse/data";
import { models } from "@terse/models";
import { algorithms, gradientCompressions } from "@terse/optimizers";
import { lineOf, nearest, OptionsError, parseOptions } from "@terse/options";
import { problemsOfAdapter } from "./adapter/problems.ts";
import { problemsOfStop } from "./best-so-far.ts";
import { problemsOfLocal, remarksOnLocal } from "./local-steps.ts";
import { methodInRounds, methodsInRun } from "./methods-in-run.ts";
import { checkGradients, problemsOfOptimizers } from "./parameter-groups.ts";
import { type Recipe, recipeSchema, standardOuter } from "./recipe-schema.ts";
import { extended, readTree, recipesFolder, type Tree, withOverrides } from "./recipe-tree.ts";
import { schedules, warmupWithin } from "./schedules/schedules.ts";
import { problemsOfAverage, remarksOnAverage } from "./weight-average.ts";

export type { Recipe };

/** The default recipe. */
export const defaultRecipe: URL = new URL("gpt-small.yaml", recipesFolder);

/**
 * The recipe of a file with dotted overrides, checked, and with all defaults filled in. `between` gives what comes on
 * top of the file and below the overrides.
 */
export function readRecipe(
  file: string | URL,
  overrides: readonly string[],
  between: (file: Tree) => Tree = () => ({}),
): Recipe {
  const { tree } = readTree(file);
  const base = extended(tree, between(tree), "the recipe's").tree;
  return checkedRecipe(parsedRecipe(withOverrides(base, overrides).tree));
}

/** The recipe of a tree. Throws `OptionsError`, also where a compression of gradients is given as an optimizer. */
export function parsedRecipe(tree: unknown): Recipe {
  const { optimizer, local } = { ...(tree as Tree | null) } as { optimizer?: Tree | null; local?: Tree | null };
  const sections = [
    ...sectionsWithGroups("optimizer", optimizer),
    ...sectionsWithGroups("local.optimizer", local?.["optimizer"] as Tree | null | undefined),
  ];
  const problems = sections.flatMap(([key, section]) => {
    const name = String(section?.["name"]);
    return Object.hasOwn(gradientCompressions, name)
      ? [
          `${key}.name: ${name} compresses the gradients of an optimizer, such as sgd, adamw, lion, lamb or muon; name that here, and give --exchange.gradient.name=${name}`,
        ]
      : [];
  });
  problems.push(...problemsOfSections(tree));
  if (problems.length > 0) throw new OptionsError(problems);
  return parseOptions(recipeSchema, withOuter(withoutNull(tree)), "");
}

function sectionsWithGroups(key: string, section: Tree | null | undefined): [key: string, section: Tree | null][] {
  const groups = section?.["groups"];
  const all = Array.isArray(groups) ? (groups as (Tree | null)[]) : [];
  return [[key, section ?? null], ...all.map((group, i): [string, Tree | null] => [`${key}.groups.${i}`, group])];
}

/** Options of local.optimizer without a name change those of the standard one. */
function withOuter(tree: unknown): unknown {
  const { local } = { ...(tree as Tree | null) };
  if (!isObject(local) || !isObject(local["optimizer"]) || local["optimizer"]["name"] !== undefined) return tree;
  return { ...(tree as Tree), local: { ...local, optimizer: { ...standardOuter, ...local["optimizer"] } } };
}

/** What is read of a schema of valibot. */
interface Entry {
  readonly type: string;
  readonly wrapped?: Entry; // of an optional key
  readonly default?: unknown;
  readonly entries?: Readonly<Record<string, Entry>>; // of an object
}

/**
 * `null` takes back what another recipe has, and is the same as none: of a key that may be absent and has no default,
 * such as `local`, `stop.target` or `exchange.gradient`.
 */
function withoutNull(tree: unknown, { entries, wrapped }: Entry = recipeSchema): unknown {
  if (wrapped) return withoutNull(tree, wrapped);
  if (!isObject(tree) || !entries) return tree;
  const of = (key: string) => (Object.hasOwn(entries, key) ? entries[key] : undefined);
  const isNone = ([key, value]: readonly [string, unknown]) => {
    const entry = value === null ? of(key) : undefined;
    return entry?.type === "optional" && entry.default === undefined && entry.wrapped?.type !== "nullable";
  };
  const kept = Object.entries(tree).filter((entry) => !isNone(entry));
  return Object.fromEntries(
    kept.map(([key, value]) => {
      const schema = of(key);
      return [key, schema ? withoutNull(value, schema) : value];
    }),
  );
}

/** A section that is a word where its name was meant: a line for each. */
function problemsOfSections(tree: unknown): string[] {
  const { exchange, ...sections } = { ...(tree as Tree | null) };
  const gradient = (exchange as Tree | null | undefined)?.["gradient"];
  const all = [
    ...Object.entries(choices).map(([key, registry]) => [key, sections[key], registry] as const),
    ["exchange.gradient", gradient, gradientCompressions] as const,
  ];
  return all.flatMap(([key, value, registry]) => {
    if (typeof value !== "string") return [];
    const name = nearest(value, Object.keys(registry)) ?? "NAME";
    return [
      `${key}: expected a group of options with name, got ${JSON.stringify(value)}; write --${key}.name=${name}, or in YAML name: ${name} below ${key.split(".").at(-1)}:`,
    ];
  });
}

/**
 * A recipe whose shares of the run have become steps; of a run that goes on, with the recipe of its save after `step`
 * steps. Throws `OptionsError` where keys of two sections contradict each other.
 */
export function checkedRecipe(given: Recipe, goesOn?: { from: Recipe; step: number }): Recipe {
  const { recipe: read, problems: ofRounds } = methodInRounds(given, goesOn);
  const { sections, problems } = methodsInRun(read);
  const all = [
    ...problemsOfOptimizers(read),
    ...problems,
    ...ofRounds,
    ...problemsOfLocal(read),
    ...problemsOfAverage(read),
    ...problemsOfAdapter(read),
    ...problemsOfStop(read),
  ];
  if (all.length > 0) throw new OptionsError(all);
  const recipe = { ...read, ...sections };
  checkGradients(recipe);
  return recipe;
}

/** What a recipe asks for and does not get to the letter, a line each. */
export function remarksOn(recipe: Recipe): string[] {
  const { warmup } = recipe.schedule;
  const within = warmupWithin(warmup, recipe.steps);
  const cut = within === warmup ? [] : [`schedule.warmup: ${warmup} steps are cut to ${within}, half of the run`];
  return [...cut, ...methodsInRun(recipe).remarks.map(lineOf), ...remarksOnLocal(recipe), ...remarksOnAverage(recipe)];
}

/**
 * The options of the file, and of recipes that it extends, that do not count, because what was given on top chooses
 * something that does not take them: a line for each choice.
 */
export function droppedOptions(file: string | URL, overrides: readonly string[]): readonly string[] {
  const { tree, dropped } = readTree(file);
  return [...dropped, ...withOverrides(tree, overrides).dropped];
}

/** What a section's `name` chooses from. */
const choices = {
  model: models,
  adapter: { lora: {} },
  data: datasets,
  optimizer: algorithms,
  schedule: schedules,
} as const;
