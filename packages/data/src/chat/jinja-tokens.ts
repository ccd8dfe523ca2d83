/** Tokens of a template in a form that Hugging Face's parser reads without changing what they mean. */
import type { Token } from "./jinja.ts";

/** Numbers with all their digits: 1e3, 1_000, and integers that no number of JavaScript holds. */
export function exactNumbers(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token.type !== "NumericLiteral") {
      found.push(token);
      continue;
    }
    let text = token.value;
    const follows = (type: string, pattern: RegExp) =>
      tokens[at + 1]?.type === type && pattern.test(tokens[at + 1]!.value);
    if (follows("Identifier", /^(_\d+)*(e\d*)?$/i)) {
      text += tokens[++at]!.value;
      if (/e$/i.test(text) && follows("AdditiveBinaryOperator", /[+-]/))
        text += tokens[++at]!.value + tokens[++at]?.value;
    }
    text = text.replaceAll("_", "");
    const isFloat = /[.e]/i.test(text);
    // The parser makes a float of what has a point, and a variable of an identifier, which never begins with a digit.
    if (isFloat) found.push({ type: "NumericLiteral", value: text.replace(/^([+-]?\d+)(?=e)/i, "$1.") });
    else found.push({ type: Number.isSafeInteger(Number(text)) ? "NumericLiteral" : "Identifier", value: text });
  }
  return found;
}
