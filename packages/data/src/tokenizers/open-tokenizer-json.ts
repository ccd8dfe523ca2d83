/** Any tokenizer.json of Hugging Face's tokenizers, by their own library. */
import { DataError } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { endOfText } from "./end-of-text.ts";
import { IsolatedTokenizer } from "./isolated-tokenizer.ts";
import { readTokenizerFile, sizeOf } from "./tokenizer-json.ts";

/** Opens a tokenizer that gives a text's own tokens, without [CLS] in front. */
export async function openTokenizerJson(path: string): Promise<Tokenizer> {
  const { text, json } = readTokenizerFile(path);
  const added = (json.added_tokens ?? []).map(({ content, id }) => [content, id] as const);
  const tokenizer = new IsolatedTokenizer({ path, json: text, added });
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
