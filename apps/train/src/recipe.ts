/** Recipes: read, checked, and with all defaults filled in. */
import { datasets } from "@terse/data";
import { models } from "@terse/models";
import { algorithms, gradientCompressions } from "@terse/optimizers";
import { lineOf, nearest, OptionsError, parseOptions } from "@terse/options";
import { methodsInRun } from "./methods-in-run.ts";
import { checkGradients, problemsOfOptimizers } from "./parameter-groups.ts";
import { type Recipe, recipeSchema } from "./recipe-schema.ts";
import { extended, isTree, readTree, recipesFolder, type Tree, withOverrides } from "./recipe-tree.ts";
import { schedules, warmupWithin } from "./schedules/schedules.ts";

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
  const { optimizer } = { ...(tree as Tree | null) } as { optimizer?: Tree | null };
  const groups = optimizer?.["groups"];
  const sections = [optimizer, ...(Array.isArray(groups) ? (groups as (Tree | null)[]) : [])];
  const problems = sections.flatMap((section, i) => {
    const name = String(section?.["name"]);
    const key = i === 0 ? "optimizer" : `optimizer.groups.${i - 1}`;
    return Object.hasOwn(gradientCompressions, name)
      ? [
          `${key}.name: ${name} compresses the gradients of an optimizer, such as sgd, adamw, lion, lamb or muon; name that here, and give --exchange.gradient.name=${name}`,
        ]
      : [];
  });
  problems.push(...problemsOfSections(tree));
  if (problems.length > 0) throw new OptionsError(problems);
  return parseOptions(recipeSchema, withoutNull(tree), "");
}

/** `exchange.gradient: null` takes back the compression of another recipe, and is the same as none. */
function withoutNull(tree: unknown): unknown {
  const { exchange } = { ...(tree as Tree | null) };
  if (!isTree(exchange) || exchange["gradient"] !== null) return tree;
  const { gradient, ...others } = exchange;
  return { ...(tree as Tree), exchange: others };
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
 * A recipe whose shares of the run have become steps. Throws `OptionsError` where keys of two sections contradict each
 * other.
 */
export function checkedRecipe(read: Recipe): Recipe {
  const { sections, problems } = methodsInRun(read);
  const all = [...problemsOfOptimizers(read), ...problems];
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
  return [...cut, ...methodsInRun(recipe).remarks.map(lineOf)];
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
const choices = { model: models, data: datasets, optimizer: algorithms, schedule: schedules } as const;
