/**
 * Recipes as they are written: the tree of a YAML file, on top of the recipe that it extends, with overrides of the
 * command line.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject } from "@terse/checkpoint";
import { applyOverrides, dropUntaken, nearest, OptionsError, parseYaml, show } from "@terse/options";
import { recipeSchema } from "./recipe-schema.ts";

/** The recipes that a name without a dot or slash stands for. */
export const recipesFolder = new URL("../recipes/", import.meta.url);

export type Tree = Readonly<Record<string, unknown>>;

interface Changed {
  readonly tree: Tree;
  readonly dropped: readonly string[]; // a line for each choice
}

/** A recipe with overrides of the command line. */
export function withOverrides(before: Tree, overrides: readonly string[]): Changed {
  const given = overrides.map((override) => override.replace(/^--/, "").split("=")[0]!);
  return changed(before, applyOverrides(before, overrides), { given, whose: "the recipe's" });
}

/** A recipe on top of the one that it extends, `base`. */
export function extended(base: Tree, own: Tree, whose: string): Changed {
  return changed(base, merged(base, own), { given: leavesOf(own).map(([key]) => key), whose });
}

/**
 * `after` is `before` with what was `given` on top. Where that chooses another name, options of the old choice that the
 * new one does not take are dropped, and of another compression all of them: bits, clip and warm-up mean other things
 * there. Where it chooses another optimizer, how the gradients were compressed for the old one is dropped.
 */
function changed(
  before: Tree,
  after: Tree,
  { given, whose }: { readonly given: readonly string[]; readonly whose: string },
): Changed {
  const { tree, dropped } = dropUntaken(recipeSchema, { before, after, given, sharingNothing: ["exchange.gradient"] });
  const lines = dropped.map(
    ({ group, key, from, to, options }) =>
      `${group}.${key} is ${to}: ${whose} ${options.join(", ")} ${options.length > 1 ? "are" : "is"} for ${from} and ${options.length > 1 ? "do" : "does"} not count`,
  );
  const [from, to] = [before, tree].map(({ optimizer }) => (optimizer as Tree | undefined)?.["name"]);
  const exchange = tree["exchange"];
  // With local steps the gradients of rounds are compressed, whose optimizer is another.
  const isOfSteps = !isObject(tree["local"]);
  if (!isOfSteps || from === undefined || from === to || !isObject(exchange) || !isObject(exchange["gradient"]))
    return { tree, dropped: lines };
  if (given.some((name) => /^exchange(\.gradient(\.|$)|$)/.test(name))) return { tree, dropped: lines };
  const { gradient, ...others } = exchange;
  const line = `optimizer.name is ${to}: ${whose} exchange.gradient, ${gradient["name"]}, is for ${from} and does not count`;
  return { tree: { ...tree, exchange: others }, dropped: [...lines, line] };
}

/** The tree of a recipe's file, on top of that of the recipe that it extends, which may extend another. */
export function readTree(file: string | URL, extending: readonly string[] = []): Changed {
  const url = urlOf(file);
  if (extending.includes(url.href))
    throw new OptionsError([
      `${String(file)}: extends goes in a circle: ${[...extending, url.href].map(nameOfFile).join(" → ")}`,
    ]);
  const found = statSync(url, { throwIfNoEntry: false });
  if (found && !found.isFile() && !found.isDirectory())
    throw new OptionsError([
      `recipe ${String(file)} is a pipe or a device, and every rank reads the recipe; write it into a file first`,
    ]);
  let source: string;
  try {
    source = readFileSync(url, "utf8");
  } catch (error) {
    const by =
      extending.length === 0
        ? "name a YAML file with --recipe"
        : `${nameOfFile(extending.at(-1)!)} extends it: name a YAML file`;
    const near = nearest(basename(String(file), extname(String(file))), recipeNames());
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    throw new OptionsError([
      `recipe ${String(file)} cannot be read (${(error as NodeJS.ErrnoException).code}); ${by}, or one of apps/train/recipes without its .yaml${meant}`,
    ]);
  }
  const written = parseYaml(source, String(file)) ?? {}; // an empty file is null
  if (!isObject(written))
    throw new OptionsError([
      `${String(file)}: expected the keys of a recipe, such as steps: 500, got ${show(written)}`,
    ]);
  const { extends: base, ...own } = written;
  if (base === undefined) return { tree: own, dropped: [] };
  if (typeof base !== "string")
    throw new OptionsError([`${String(file)}: extends: expected the name or the file of a recipe`]);
  const below = readTree(isName(base) ? base : new URL(base, url), [...extending, url.href]);
  const { tree, dropped } = extended(below.tree, own, `${base}'s`);
  return { tree, dropped: [...below.dropped, ...dropped] };
}

/** A word without a dot or slash is the name of a recipe in apps/train/recipes. */
const isName = (file: string) => /^[\w-]+$/.test(file);

function urlOf(file: string | URL): URL {
  if (typeof file !== "string") return file;
  return isName(file) ? new URL(`${file}.yaml`, recipesFolder) : pathToFileURL(file);
}

const recipeNames = () => readdirSync(recipesFolder).map((file) => basename(file, ".yaml"));

const nameOfFile = (href: string) => href.slice(href.lastIndexOf("/") + 1);

function merged(base: Tree, own: Tree): Tree {
  const both = Object.entries(own).map(([key, value]) => {
    const below = base[key];
    return [key, isObject(value) && isObject(below) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(both) };
}

/** All values of a tree, each with its dotted key. A list is a value. */
export const leavesOf = (tree: Tree, above = ""): [key: string, value: unknown][] =>
  Object.entries(tree).flatMap(([key, value]) =>
    isObject(value) ? leavesOf(value, `${above}${key}.`) : [[`${above}${key}`, value] as [string, unknown]],
  );
