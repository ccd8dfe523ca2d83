/** GPT-2's byte-pair encoding, Radford et al. 2019; gpt-tokenizer brings its ranks. */
import { DataError } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { byteLevelJson } from "./byte-level-json.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

export const gpt2Vocabulary = 50257; // 256 bytes, 50,000 merges, <|endoftext|>
export const gpt2EndOfText = 50256;

/** Loads the ranks, which takes a tenth of a second. */
export async function gpt2Tokenizer(): Promise<Tokenizer> {
  const { encode, decode } = await import("gpt-tokenizer/encoding/gpt2");
  const asText = { disallowedSpecial: new Set<string>() }; // "<|endoftext|>" in a text is text
  return {
    vocabulary: gpt2Vocabulary,
    endOfText: gpt2EndOfText,
    encode: (text) => encode(text, asText),
    decode(ids) {
      const numbers = Array.from(ids, Number);
      const wrong = numbers.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= gpt2Vocabulary);
      if (wrong >= 0)
        throw new DataError(
          `Token ${numbers[wrong]} at position ${wrong} is none of GPT-2's; give integers from 0 to ${gpt2Vocabulary - 1}.`,
        );
      return decode(numbers);
    },
  };
}

/** Its tokenizer.json, which takes a second. */
export async function gpt2Json(): Promise<TokenizerJson> {
  const { default: ranks } = await import("gpt-tokenizer/bpeRanks/r50k_base"); // a text, or bytes that are none
  const tokens = ranks.map((token) => (typeof token === "string" ? Buffer.from(token) : Uint8Array.from(token)));
  const whole = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const added_tokens = [{ id: gpt2EndOfText, content: "<|endoftext|>", ...whole }];
  return { ...byteLevelJson(tokens, { words: true }), added_tokens };
}
