/**
 * YAML of recipes and overrides: the 1.2 core schema (3e-4 is a number; yes, no and on are strings). Digits may be
 * grouped with underscores (10_000).
 */
import { type Document, isScalar, parseDocument, type ScalarTag, type Tags, visit } from "yaml";
import { OptionsError } from "./options-error.ts";

const groupedDigits: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  test: /^[-+]?[0-9]+(?:_[0-9]+)+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/,
  resolve: (digits) => Number(digits.replaceAll("_", "")),
};

const settings = {
  version: "1.2",
  schema: "core",
  prettyErrors: true,
  customTags: (tags: Tags): Tags => [...tags, groupedDigits],
} as const;

const mostProblems = 3; // one mistake may cause hundreds

/** Parses a recipe's text. Throws `OptionsError` with `where` (a file name) and the line. */
export function parseYaml(text: string, where: string): unknown {
  const document = parseDocument(text, settings);
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0)
    throw new OptionsError(
      wrong.slice(0, mostProblems).map((error) => {
        const hint = error.code === "MULTILINE_IMPLICIT_KEY" ? " is there a space after each colon?" : "";
        return `${where}: not valid YAML: ${error.message.trim().split("\n")[0]}${hint}`;
      }),
    );
  const joined = keyWithValue(document);
  if (joined !== undefined)
    throw new OptionsError([`${where}: ${joined} is a key without a value: put a space after the colon`]);
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new OptionsError([`${where}: not valid YAML: ${(error as Error).message}`]);
  }
}

/** The first key in braces that has a colon and no value: {name:lion}. No key of a recipe has a colon. */
function keyWithValue(document: Document): string | undefined {
  let found: string | undefined;
  visit(document, {
    Pair(_, { key, value }) {
      const none = value === null || (isScalar(value) && value.value === null && !value.source);
      if (!none || !isScalar(key) || key.type !== "PLAIN" || !String(key.value).includes(":")) return undefined;
      found = String(key.value);
      return visit.BREAK;
    },
  });
  return found;
}

/**
 * Parses one value of a command line: a number, true, false, null, a quoted string, a [list] or a {group}. Any other
 * text is a string, so that `name=run #3` and `path=*` need no quotes. Throws `OptionsError` if a bracket or quote is
 * not closed.
 */
export function parseYamlValue(text: string, where: string): unknown {
  const value = text.trim();
  if (/^[[{"']/.test(value)) return parseYaml(value, where);
  const document = parseDocument(value, settings);
  const scalar = document.contents;
  const whole = document.errors.length === 0 && isScalar(scalar) && scalar.source === value;
  return whole ? scalar.value : value;
}
