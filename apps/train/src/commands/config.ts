/** `./terse config explain [KEY]`, and `./terse config schema`: what a recipe may say. */
import { readFileSync } from "node:fs";
import { algorithms, gradientCompressions } from "@terse/optimizers";
import {
  endingIn,
  type ListedOption,
  listOptions,
  nearest,
  OptionsError,
  ownWord,
  parseArguments,
  print,
} from "@terse/options";
import { dottedKeys, recipeSchema } from "../recipe-schema.ts";
import { jsonSchema } from "./json-schema.ts";

/** One sentence for each key: from the methods' definitions, and from key-sentences.txt. */
export const sentences: ReadonlyMap<string, string> = withThoseOfRounds([
  ...sentencesOf("optimizer", algorithms),
  ...sentencesOf("exchange.gradient", gradientCompressions),
  ...readFileSync(new URL("../key-sentences.txt", import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line): [string, string] => {
      const [, key, sentence] = /^(\S+)\s+(.*)$/.exec(line)!;
      return [key!, sentence!];
    }),
]);

/** The optimizer of rounds has the options of any optimizer, but for clipping. */
function withThoseOfRounds(all: readonly (readonly [key: string, sentence: string])[]): Map<string, string> {
  const ofOptimizers = all.filter(([key]) => key.startsWith("optimizer.") && !key.startsWith("optimizer.clip"));
  return new Map([...ofOptimizers.map(([key, sentence]) => [`local.${key}`, sentence] as const), ...all]);
}

function sentencesOf(section: string, registry: object): [string, string][] {
  return Object.values(registry as Record<string, { sentences?: Record<string, string> }>).flatMap(
    ({ sentences = {} }) =>
      Object.entries(sentences).map(([option, sentence]): [string, string] => [`${section}.${option}`, sentence]),
  );
}

export async function configCommand(argv: readonly string[]): Promise<void> {
  const { words } = parseArguments(argv, { command: "./terse config", flags: {} });
  const [what, key, more] = words;
  if (what === "schema" && key === undefined)
    return void process.stdout.write(`${JSON.stringify(jsonSchema(recipeSchema, sentences), undefined, 2)}\n`);
  if (what !== "explain" || more !== undefined)
    throw new OptionsError([
      `${["config", ...words].join(" ").trim()}: the commands are ./terse config explain [KEY], and ./terse config schema`,
    ]);
  print(explain(key));
}

/**
 * The keys that `key` names: one, all below it, or all of them. A line for each of their forms, and one for the
 * sentence. Throws `OptionsError`.
 */
export function explain(key?: string): string[] {
  const all = listOptions(recipeSchema);
  const chosen = key === undefined ? all : all.filter(({ name }) => name === key || name.startsWith(`${key}.`));
  if (chosen.length === 0) {
    const near = similar(key!, dottedKeys());
    throw new OptionsError([
      `${key || '""'}: no key of a recipe${near.length === 0 ? "." : `; did you mean ${near.join(" or ")}?`} See ./terse config explain, which lists all.`,
    ]);
  }
  return [...Map.groupBy(chosen, ({ name }) => name)].flatMap(([name, forms]) => [
    name,
    `  ${sentences.get(name)}`,
    ...[...Map.groupBy(forms, formText)].map(([text, same]) => `  ${text}${whereText(same)}`),
  ]);
}

/** Keys, or groups of keys, that are written like this one, end like it, or are similar: lr is optimizer.lr. */
function similar(key: string, names: readonly string[]): readonly string[] {
  const groups = new Set(names.flatMap((name) => name.split(".").slice(0, -1)));
  const same = endingIn(ownWord(key), [...groups, ...names]);
  const near = nearest(key, names);
  return same.length > 0 ? same.slice(0, 3) : near === undefined ? [] : [near];
}

function formText({ takes, required, fallback }: ListedOption): string {
  const unset = required ? "required" : "default unset";
  return `${takes}; ${fallback === undefined ? unset : `default ${typeof fallback === "string" ? fallback : JSON.stringify(fallback)}`}`;
}

const whereText = (forms: readonly ListedOption[]) => {
  const only = forms.flatMap(({ only }) => only ?? []);
  return only.length === 0 ? "" : ` (${only.join(", ")})`;
};
