/**
 * The keys of a recipe, as the help and docs/recipe-keys show them. `./terse` prints recipe-keys.txt, which this file
 * makes, without Node and without a build.
 */
import { type ListedOption, listOptions, type v } from "@terse/options";

const [width, left] = [80, 38]; // columns; of the second one

/**
 * A line for each key: what it takes, and its default. `recipe` is the default recipe, whose values come before the
 * schema's defaults.
 */
export function recipeKeysText(schema: v.GenericSchema, recipe: Readonly<Record<string, unknown>>): string {
  let choice: string | undefined;
  const lines = listOptions(schema).flatMap(({ name, takes, required, fallback, only }) => {
    const heading = only !== choice && only !== undefined ? [`  with --${only}:`] : [];
    choice = only;
    const chosen = only === undefined || valueAt(recipe, only.split("=")[0]!) === only.split("=")[1];
    const own = chosen ? valueAt(recipe, name) : undefined;
    const value = own === undefined ? fallback : own;
    const shown =
      value === undefined ? (required ? "required" : "unset") : `${textOf(value)}${own === undefined ? "" : "*"}`;
    return [...heading, ...columns(`${only === undefined ? "  " : "    "}--${name}`, `${takes} (${shown})`)];
  });
  return `recipe: every key, what it takes, and its default (*: set by the default recipe)\n${lines.join("\n")}\n`;
}

/**
 * Pages by their files in docs/: an index, and a page for each section, with a table of its keys and of those that
 * belong to a choice such as `optimizer.name=lion`.
 */
export function recipeKeysPages(schema: v.GenericSchema, sentences: ReadonlyMap<string, string>): Map<string, string> {
  const sectionOf = ({ name }: ListedOption) => (name.includes(".") ? name.split(".")[0]! : "run");
  const sections = [...Map.groupBy(listOptions(schema), sectionOf)];
  const choicesOf = (keys: readonly ListedOption[]) => [...new Set(keys.flatMap(({ only }) => only ?? []))];
  const pages = sections.map(([section, keys]): [string, string] => {
    const choices = choicesOf(keys).map(
      (only) => `[${only.split("=")[1]}](#${only.replaceAll(/[^\w-]/g, "").toLowerCase()})`,
    );
    const tables = [...Map.groupBy(keys, ({ only }) => only)].map(([only, own]) => {
      const heading = only === undefined ? [] : [`## ${only}`, ""];
      return [...heading, ...tableOf(own, sentences), ""].join("\n");
    });
    const links = choices.length > 0 ? `${choices.join(" · ")}\n\n` : "";
    return [`recipe-keys/${section}.md`, `# Recipe keys: ${section}\n\n${links}${tables.join("\n")}`];
  });
  const rows = sections.map(([section, keys]) => {
    const first = [...new Set(keys.map(({ name }) => name.split(".")[section === "run" ? 0 : 1]!))];
    const key = `${section}.name=`;
    const own = choicesOf(keys)
      .filter((only) => only.startsWith(key))
      .map((only) => only.slice(key.length));
    const words = own.length > 0 ? `of ${own.join(", ")}` : first.join(", ");
    return `| [${section}](recipe-keys/${section}.md) | ${words} |`;
  });
  const index = `# The keys of a recipe

Each can be set in a recipe's file, as [Recipes](recipes.md) says, and on the command line:
\`./terse train --optimizer.lr=1e-3\`. The same is printed by \`./terse config explain [KEY]\`; \`./terse config schema\`
gives it to editors as JSON Schema.

| section | keys |
|---|---|
${rows.join("\n")}
`;
  return new Map([["recipe-keys.md", index], ...pages]);
}

function tableOf(keys: readonly ListedOption[], sentences: ReadonlyMap<string, string>): string[] {
  const rows = keys.map(({ name, takes, required, fallback }) => {
    const value = fallback === undefined ? (required ? "required" : "") : `\`${textOf(fallback)}\``;
    const sentence = sentences.get(name);
    if (sentence === undefined)
      throw new Error(
        `${name} has no sentence: add a line to apps/train/src/key-sentences.txt, or to \`sentences\` in the definition of the method that has it.`,
      );
    return `| \`${name}\` | ${takes} | ${value} | ${sentence} |`;
  });
  return ["| key | takes | default | |", "|---|---|---|---|", ...rows];
}

/** Two columns; the second one is wrapped at its words, and begins a line of its own beside a long first one. */
function columns(first: string, second: string): string[] {
  if (first.length >= left) return [first, ...columns("", second)];
  const rows = [""];
  for (const word of second.split(" "))
    if (`${rows.at(-1)} ${word}`.length > width - left) rows.push(word);
    else rows[rows.length - 1] = `${rows.at(-1)} ${word}`.trim();
  return rows.map((row, i) => `${(i === 0 ? first : "").padEnd(left - 1)} ${row}`);
}

const valueAt = (tree: unknown, name: string): unknown =>
  name.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], tree);

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
