/** Any tokenizer.json of Hugging Face's tokenizers, by their own library. */
import { DataError } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { endOfText } from "./end-of-text.ts";
import { IsolatedTokenizer } from "./isolated-tokenizer.ts";
import { readTokenizerFile, sizeOf } from "./tokenizer-json.ts";

/** The regular expressions of a file, wherever they are in it. */
function patternsOf(json: object): string[] {
  const patterns: string[] = [];
  const parts: unknown[] = [json]; // and not by recursion: a hostile file may be deep
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (typeof part !== "object" || part === null) continue;
    if ("Regex" in part && typeof part.Regex === "string") patterns.push(part.Regex);
    for (const inner of Object.values(part)) if (typeof inner === "object") parts.push(inner);
  }
  return patterns;
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
    encode: (text, context) => tokenizer.encode(text, context),
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
