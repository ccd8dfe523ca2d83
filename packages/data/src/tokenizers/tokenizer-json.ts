/** Any tokenizer.json of Hugging Face's tokenizers, by their own library. */
import { readFileSync } from "node:fs";
import { DataError, reasonOf } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";

export interface TokenizerJson {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
    readonly [more: string]: unknown;
  };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special?: boolean }[];
  readonly [more: string]: unknown;
}

/** Throws `DataError` where the file is none. */
export function readTokenizerJson(path: string): TokenizerJson {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new DataError(
      `Cannot read the tokenizer ${path}: ${reasonOf(error)}; data.tokenizer is bytes, gpt2, or the path of a tokenizer.json.`,
    );
  }
  try {
    const json = JSON.parse(text) as TokenizerJson;
    if (typeof json.model.vocab === "object" && json.model.vocab !== null) return json;
  } catch {}
  throw new DataError(
    `${path} is no tokenizer.json: it has no model with a vocabulary; save one with a fast tokenizer's save_pretrained().`,
  );
}

/** The largest id and one, over the model's tokens and the added ones. */
function sizeOf({ model: { vocab }, added_tokens = [] }: TokenizerJson): number {
  const count = Array.isArray(vocab) ? vocab.length : 0; // a list is in the order of ids
  const largest = Array.isArray(vocab)
    ? -1
    : Object.values(vocab as Record<string, number>).reduce((a, b) => Math.max(a, b), -1);
  return Math.max(count, largest + 1, ...added_tokens.map(({ id }) => id + 1));
}

/** The ids of these tokens, of the vocabulary or added; undefined for one that is absent. Throws `DataError`. */
export function idsInJson(path: string, contents: readonly string[]): (number | undefined)[] {
  const { model, added_tokens = [] } = readTokenizerJson(path);
  return contents.map((content) => {
    const added = added_tokens.find((token) => token.content === content);
    if (added) return added.id;
    if (!Array.isArray(model.vocab)) return (model.vocab as Record<string, number>)[content];
    const place = model.vocab.findIndex(([piece]) => piece === content);
    return place < 0 ? undefined : place;
  });
}

export const vocabularyOfJson = (path: string) => sizeOf(readTokenizerJson(path));

/** Of a text, tokens only: no [CLS] in front. */
export async function tokenizerJson(path: string): Promise<Tokenizer> {
  const json = readTokenizerJson(path);
  const vocabulary = sizeOf(json);
  const { Tokenizer: Loaded } = await import("@huggingface/tokenizers");
  let loaded: InstanceType<typeof Loaded>;
  try {
    loaded = new Loaded(json, {});
  } catch (error) {
    throw new DataError(`${path} cannot be used: ${(error as Error).message}; save it again with a fast tokenizer.`);
  }
  const id = (content: string) => loaded.token_to_id(content);
  return {
    vocabulary,
    endOfText: id("<|endoftext|>") ?? id("</s>") ?? id("[SEP]"),
    encode: (text) => loaded.encode(text, { add_special_tokens: false }).ids,
    decode(ids) {
      const numbers = Array.from(ids, Number);
      return numbers.length === 0 ? "" : loaded.decode(numbers, { skip_special_tokens: true }); // the library refuses none
    },
  };
}
