/** `./terse config explain [KEY]`, and `./terse config schema`: what a recipe may say. */
import { readFileSync } from "node:fs";
import { type ListedOption, listOptions, nearest, OptionsError, parseArguments } from "@terse/options";
import { recipeSchema } from "../recipe.ts";
import { jsonSchema } from "./json-schema.ts";

/** One sentence for each key, from key-sentences.txt. */
export const sentences: ReadonlyMap<string, string> = new Map(
  readFileSync(new URL("../key-sentences.txt", import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [, key, sentence] = /^(\S+)\s+(.*)$/.exec(line)!;
      return [key!, sentence!];
    }),
);

export async function configCommand(argv: readonly string[]): Promise<void> {
  const { words } = parseArguments(argv, { command: "./terse config", flags: {} });
  const [what, key, more] = words;
  if (what === "schema" && key === undefined)
    return void process.stdout.write(`${JSON.stringify(jsonSchema(recipeSchema, sentences), undefined, 2)}\n`);
  if (what !== "explain" || more !== undefined)
    throw new OptionsError([
      `config ${words.join(" ")}: the commands are ./terse config explain [KEY], and ./terse config schema`,
    ]);
  process.stdout.write(`${explain(key).join("\n")}\n`);
}

/** The keys that `key` names: one, all below it, or all of them. A line for each of their forms, and one for the sentence. Throws `OptionsError`. */
export function explain(key?: string): string[] {
  const all = listOptions(recipeSchema);
  const chosen = key === undefined ? all : all.filter(({ name }) => name === key || name.startsWith(`${key}.`));
  if (chosen.length === 0) {
    const names = [...new Set(all.map(({ name }) => name))];
    const near = nearest(key!, names);
    throw new OptionsError([
      `${key}: no key of a recipe${near === undefined ? "." : `; did you mean ${near}?`} See ./terse config explain, which lists all.`,
    ]);
  }
  return [...Map.groupBy(chosen, ({ name }) => name)].flatMap(([name, forms]) => [
    name,
    `  ${sentences.get(name)}`,
    ...[...Map.groupBy(forms, formText)].map(([text, same]) => `  ${text}${whereText(same)}`),
  ]);
}

function formText({ takes, required, fallback }: ListedOption): string {
  const unset = required ? "required" : "default unset";
  return `${takes}; ${fallback === undefined ? unset : `default ${typeof fallback === "string" ? fallback : JSON.stringify(fallback)}`}`;
}

const whereText = (forms: readonly ListedOption[]) => {
  const only = forms.flatMap(({ only }) => only ?? []);
  return only.length === 0 ? "" : ` (${only.join(", ")})`;
};
