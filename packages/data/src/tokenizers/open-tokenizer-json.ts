/** Any tokenizer.json of Hugging Face's tokenizers, by their own library. */
import { DataError } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { endOfText } from "./end-of-text.ts";
import { IsolatedTokenizer } from "./isolated-tokenizer.ts";
import { readTokenizerFile, sizeOf } from "./tokenizer-json.ts";

/** The regular expressions of a file, wherever they are in it. */
function patternsOf(part: unknown): string[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) =>
    key === "Regex" && typeof value === "string" ? [value] : patternsOf(value),
  );
}

/** Of a text, tokens only: no [CLS] in front. */
export async function openTokenizerJson(path: string): Promise<Tokenizer> {
  const { text, json } = readTokenizerFile(path);
  const { model: _, added_tokens = [], ...parts } = json;
  const added = added_tokens.map(({ content, id }) => [content, id] as const);
  const tokenizer = new IsolatedTokenizer({ path, json: text, added, patterns: patternsOf(parts) });
  await tokenizer.load();
  const vocabulary = sizeOf(json);
  return {
    vocabulary,
    endOfText: endOfText(path, json),
    encode: (text) => tokenizer.encode(text),
    async decode(ids) {
      const numbers = Array.from(ids, Number);
      const wrong = numbers.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary);
      if (wrong >= 0)
        throw new DataError(
          `Token ${numbers[wrong]} at position ${wrong} is none of ${path}; give integers from 0 to ${vocabulary - 1}.`,
        );
      return tokenizer.decode(numbers);
    },
  };
}
