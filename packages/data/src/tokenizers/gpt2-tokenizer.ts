/** GPT-2's byte-pair encoding, Radford et al. 2019; gpt-tokenizer brings its ranks. */
import type { Tokenizer } from "../dataset.ts";
import { byteLevelJson } from "./byte-level-json.ts";
import { checkedIds } from "./checked-ids.ts";
import { IsolatedTokenizer } from "./isolated-tokenizer.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

export const gpt2Vocabulary = 50257; // 256 bytes, 50,000 merges, <|endoftext|>
export const gpt2EndOfText = 50256;

/**
 * gpt-tokenizer's time is quadratic in a word's letters; for longer words Hugging Face's library makes the same tokens.
 */
const mostLetters = 1000;

/** Loads the ranks, which takes a tenth of a second. */
export async function gpt2Tokenizer(): Promise<Tokenizer> {
  const [{ encode }, tokens] = await Promise.all([import("gpt-tokenizer/encoding/gpt2"), tokenBytes()]);
  const asText = { disallowedSpecial: new Set<string>() }; // "<|endoftext|>" in a text is text
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let ofLongWords: IsolatedTokenizer | undefined;
  return {
    vocabulary: gpt2Vocabulary,
    endOfText: gpt2EndOfText,
    encode(text) {
      if (!hasLongWord(text)) return encode(text, asText);
      const json = () => JSON.stringify(byteLevelJson(tokens, { words: true }));
      ofLongWords ??= new IsolatedTokenizer({ path: "gpt2", json: json(), added: [] });
      return ofLongWords.encode(text);
    },
    decode(ids) {
      const numbers = checkedIds(ids, gpt2Vocabulary, "is none of GPT-2's");
      // gpt-tokenizer's own decoder keeps the bytes of a letter that was cut, for the next text.
      return decoder.decode(Buffer.concat(numbers.map((id) => tokens[id] ?? Buffer.from("<|endoftext|>"))));
    },
  };
}

/** A word is either all white space, or has none. */
function hasLongWord(text: string): boolean {
  for (const [word] of text.matchAll(/\S+|\s+/g)) if (word.length > mostLetters) return true;
  return false;
}

/** The bytes of each token but the last, <|endoftext|>. */
async function tokenBytes(): Promise<Uint8Array[]> {
  const { default: ranks } = await import("gpt-tokenizer/bpeRanks/r50k_base"); // a text, or bytes that are none
  return ranks.map((token) => (typeof token === "string" ? Buffer.from(token) : Uint8Array.from(token)));
}

/** Its tokenizer.json, which takes a second. */
export async function gpt2Json(): Promise<TokenizerJson> {
  const whole = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const added_tokens = [{ id: gpt2EndOfText, content: "<|endoftext|>", ...whole }];
  return { ...byteLevelJson(await tokenBytes(), { words: true }), added_tokens };
}
