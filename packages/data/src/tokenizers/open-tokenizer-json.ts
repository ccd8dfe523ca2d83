/** Any tokenizer.json of Hugging Face's tokenizers, by their own library. */
import type { Tokenizer } from "../dataset.ts";
import { checkedIds } from "./checked-ids.ts";
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
    decode: async (ids) => tokenizer.decode(checkedIds(ids, vocabulary, `is none of ${path}`)),
  };
}
