/** Tokens of a template in a form that Hugging Face's parser reads without changing what they mean. */
import { type Token, tokenize } from "./library.ts";

/** The tokens of a template; blanks around tags are those of transformers' Jinja. */
export const readableTokens = (template: string): Token[] =>
  [exactNumbers, testsAsFilters, withChains, withTuples, withAsLoop].reduce(
    (tokens, rewrite) => rewrite(tokens),
    tokenize(template, { lstrip_blocks: true, trim_blocks: true }),
  );

/** A template with {% raw %} as an expression that writes its text, and without the signs of {%+ and +%}: blanks stay. */
export function withoutRaw(template: string): string {
  const raw =
    /(?<blanks>[^\S\n]*)\{%(?<left>[-+]?)\s*raw\s*(?<inner>-?)%\}(?<content>.*?)\{%(?<end>[-+]?)\s*endraw\s*(?<right>[-+]?)%\}(?<newline>\n?)/gs;
  return template
    .replaceAll(raw, (...found) => {
      const { blanks, left, inner, content, end, right, newline } = found.at(-1) as Record<string, string>;
      const at = found.at(-3) as number;
      let text = inner === "-" ? content!.trimStart() : content!;
      if (end === "-") text = text.trimEnd();
      else if (end === "") text = text.replace(/(?<=\n)[^\S\n]+$/, "");
      const written = text.replaceAll(
        /[{}%#'\\\n]/g,
        (letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, "0")}`,
      );
      const isFirst = at === 0 || template[at - 1] === "\n";
      const before = left === "" && isFirst ? "" : blanks;
      const open = left === "-" ? "{{-" : "{{";
      return `${before}${open} '${written}' ${right === "-" ? "-}}" : "}}"}${right === "" ? "" : newline}`;
    })
    .replaceAll("{%+", "{{''}}{%")
    .replaceAll("+%}", "%}{{''}}");
}

/** Numbers with all their digits: 1e3, 1_000, and integers that no number of JavaScript holds. */
function exactNumbers(tokens: readonly Token[]): Token[] {
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

const opening = ["OpenParen", "OpenSquareBracket", "OpenCurlyBracket"];
const closing = ["CloseParen", "CloseSquareBracket", "CloseCurlyBracket"];
const token = (type: string, value: string): Token => ({ type, value });
const name = (value: string) => token("Identifier", value);
const comma = token("Comma", ",");

/** The place of the bracket that closes the one at `at`. */
function closeOf(tokens: readonly Token[], at: number): number {
  for (let depth = 0, i = at; i < tokens.length; i++) {
    if (opening.includes(tokens[i]!.type)) depth++;
    else if (closing.includes(tokens[i]!.type) && --depth === 0) return i;
  }
  return tokens.length - 1;
}

/** Words that stand between values. */
const words = ["and", "or", "not", "if", "elif", "else", "in", "is"];
const isWord = ({ type, value }: Token) => type === "Identifier" && words.includes(value);

/** Tests with an argument, which the parser does not know: x is not eq y becomes the filter x | `is not eq`(y). */
function testsAsFilters(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const { type, value } = tokens[at]!;
    const isTest = type === "Identifier" && value === "is" && found.at(-1)?.type !== "Dot";
    const negated = isTest && tokens[at + 1]?.value === "not";
    const begin = at + (negated ? 3 : 2);
    const first = tokens[begin];
    const isArgument =
      first && !isWord(first) && ["Identifier", "StringLiteral", "NumericLiteral", ...opening].includes(first.type);
    if (!isTest || !isArgument) {
      found.push(tokens[at]!);
      continue;
    }
    const isCall = first.type === "OpenParen";
    const end = isCall ? closeOf(tokens, begin) + 1 : endOfValue(tokens, begin);
    const args = testsAsFilters(isCall ? tokens.slice(begin + 1, end - 1) : tokens.slice(begin, end));
    const test = name(`is ${negated ? "not " : ""}${tokens[begin - 1]!.value}`);
    found.push(token("Pipe", "|"), test, token("OpenParen", "("), ...args, token("CloseParen", ")"));
    at = end - 1;
  }
  return found;
}

/** The place behind a value, with its members and calls. */
function endOfValue(tokens: readonly Token[], at: number): number {
  let end = opening.includes(tokens[at]!.type) ? closeOf(tokens, at) + 1 : at + 1;
  for (;;) {
    const { type } = tokens[end] ?? { type: "" };
    if (type === "Dot") end += 2;
    else if (type === "OpenParen" || type === "OpenSquareBracket") end = closeOf(tokens, end) + 1;
    else return end;
  }
}

/** a < b < c: the second operator becomes `and <`, which compares b once more. */
function withChains(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  const around: boolean[] = [];
  let [isCompared, isLoop] = [false, false]; // whether a comparison is to the left, and whether `in` is a loop's
  for (let at = 0; at < tokens.length; at++) {
    const { type, value } = tokens[at]!;
    const isName = type === "Identifier" && found.at(-1)?.type !== "Dot";
    if (type === "OpenStatement") isLoop = tokens[at + 1]?.value === "for";
    const isNotIn = isName && value === "not" && tokens[at + 1]?.value === "in";
    const isIn = isName && value === "in";
    if (isIn && isLoop) isLoop = false;
    else if (isNotIn || isIn || type === "ComparisonBinaryOperator") {
      const operator = isNotIn ? [tokens[at]!, tokens[++at]!] : [tokens[at]!];
      const words = operator.map(({ value }) => value).join(" ");
      found.push(...(isCompared ? [token("ComparisonBinaryOperator", `and ${words}`)] : operator));
      isCompared = true;
      continue;
    }
    if (opening.includes(type)) around.push(isCompared);
    isCompared = closing.includes(type)
      ? (around.pop() ?? false)
      : isCompared &&
        !opening.includes(type) &&
        !["Comma", "Colon", "Equals", "Text", "OpenStatement", "OpenExpression"].includes(type) &&
        !(isName && isWord(tokens[at]!) && value !== "is");
    found.push(tokens[at]!);
  }
  return found;
}

/** Tuples that the parser does not know: () and those with a comma at their end. */
function withTuples(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const { type } = tokens[at]!;
    const before = tokens[at - 1];
    const isCall =
      before && ((before.type === "Identifier" && !isWord(before)) || closing.slice(0, 2).includes(before.type));
    const close = type === "OpenParen" && !isCall ? closeOf(tokens, at) : at;
    const isEmpty = close === at + 1;
    if (close === at || !(isEmpty || tokens[close - 1]!.type === "Comma")) {
      found.push(tokens[at]!);
      continue;
    }
    const items = withTuples(tokens.slice(at + 1, isEmpty ? close : close - 1));
    const list = [token("OpenSquareBracket", "["), ...items, token("CloseSquareBracket", "]")];
    found.push(tokens[at]!, ...list, token("Pipe", "|"), name(asTuple), tokens[close]!);
    at = close;
  }
  return found;
}

/** The filter that makes a tuple of a list, and the first variable of a loop that is {% with %}. No template has them. */
export const asTuple = "as tuple";
export const ofWith = "{% with %}";

/** {% with a=x, b=y %} becomes a loop over one list: {% for `{% with %}`, a, b in [none, x, y] %}. */
function withAsLoop(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const statement = found.at(-1)?.type === "OpenStatement" ? tokens[at]!.value : "";
    if (statement === "endwith") found.push(name("endfor"));
    else if (statement !== "with") found.push(tokens[at]!);
    else {
      const close = tokens.findIndex(({ type }, i) => i > at && type === "CloseStatement");
      const end = close < 0 ? tokens.length : close;
      const names = [name(ofWith)];
      const values = [name("none")];
      while (++at < end) {
        names.push(comma, tokens[at]!);
        values.push(comma);
        for (at += 2; at < end && tokens[at]!.type !== "Comma"; at++) {
          const to = opening.includes(tokens[at]!.type) ? closeOf(tokens, at) : at;
          values.push(...tokens.slice(at, to + 1));
          at = to;
        }
      }
      const list = [token("OpenSquareBracket", "["), ...values, token("CloseSquareBracket", "]")];
      found.push(name("for"), ...names, name("in"), ...list, ...tokens.slice(end, end + 1));
      at = end;
    }
  }
  return found;
}
