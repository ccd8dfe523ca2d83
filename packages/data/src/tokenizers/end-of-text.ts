/** The token that ends a text, by the files of a tokenizer. */
import { dirname, join } from "node:path";
import { jsonIfThere } from "./json-file.ts";
import { contentOf, idsIn, type TokenizerJson } from "./tokenizer-json.ts";

/** Names for it, for tokenizers whose files do not say which one it is. */
const known = ["<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "[EOS]", "[SEP]"];

type Named = string | { readonly content?: unknown } | null | undefined;

/**
 * The id of eos_token. The first file beside `path` that names one of the tokenizer's tokens decides:
 * tokenizer_config.json, special_tokens_map.json, then eos_token_id in the model's generation_config.json and
 * config.json. Otherwise it is a token with a known name. Throws `DataError` for a file that is no JSON.
 */
export function endOfText(path: string, json: TokenizerJson): number | undefined {
  const saved = (name: string): { eos_token?: Named; eos_token_id?: unknown } =>
    jsonIfThere(join(dirname(path), name)) || {};
  for (const name of ["tokenizer_config.json", "special_tokens_map.json"]) {
    const { eos_token: named } = saved(name);
    const content = typeof named === "string" ? named : named?.content;
    const id = typeof content === "string" ? idsIn(json, [content])[0] : undefined;
    if (id !== undefined) return id;
  }
  for (const name of ["generation_config.json", "config.json"]) {
    const id = [saved(name).eos_token_id].flat()[0]; // one id, or a list
    if (typeof id === "number" && contentOf(json, id) !== undefined) return id;
  }
  return idsIn(json, known).find((id) => id !== undefined);
}
