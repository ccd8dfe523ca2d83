import { OptionsError } from "@terse/options";

const closing: Readonly<Record<string, string>> = { "[": "]", "{": "}" };

/**
 * The values of an option that commas separate: "1e-3,2e-3". A comma in brackets, braces or quotes belongs to its
 * value: "[0.9, 0.99],[0.95, 0.99]" are two. Throws `OptionsError` where a value is empty.
 */
export function splitValues(key: string, text: string): string[] {
  const values: string[] = [];
  const open: string[] = []; // what closes the brackets that are open
  let quote: string | undefined;
  let value = "";
  for (const letter of text) {
    const begins = value.trim() === "" || open.length > 0; // elsewhere a quote or a bracket is a letter like others
    if (letter === "," && open.length === 0 && quote === undefined) {
      values.push(value);
      value = "";
      continue;
    }
    value += letter;
    if (quote !== undefined) quote = letter === quote ? undefined : quote;
    else if (begins && (letter === '"' || letter === "'")) quote = letter;
    else if (begins && letter in closing) open.push(closing[letter]!);
    else if (letter === open.at(-1)) open.pop();
  }
  const all = [...values, value].map((each) => each.trim());
  if (all.includes(""))
    throw new OptionsError([
      `--${key}: no value before or after a comma in "${text}"; a value that has a comma itself is quoted: --${key} '"a,b"'`,
    ]);
  return all;
}
