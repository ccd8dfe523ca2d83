/** tokenizer.json of byte-pair encodings whose tokens are bytes, such as GPT-2's, for Hugging Face's tokenizers. */
import type { TokenizerJson } from "./tokenizer-json.ts";

/**
 * The character for each byte in a tokenizer.json: itself where it is printable, else the next one from U+0100. Radford
 * et al. 2019.
 */
const characters: readonly string[] = (() => {
  const printed = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printed(byte) ? byte : next++));
})();

const inCharacters = (bytes: Uint8Array) => Array.from(bytes, (byte) => characters[byte]!).join("");

/** All 256 bytes, whose ids are their values. */
export const bytesJson = (): TokenizerJson =>
  byteLevelJson(
    Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    { words: false },
  );

/** `tokens` are ordered by id, which is also the order of the merges. With `words`, no token has parts of two words. */
export function byteLevelJson(tokens: readonly Uint8Array[], { words }: { words: boolean }): TokenizerJson {
  const names = tokens.map(inCharacters);
  const ids = new Map(names.map((name, id) => [name, id]));
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: words };
  return {
    version: "1.0",
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      vocab: Object.fromEntries(ids),
      merges: names.filter((name) => name.length > 1).map((name) => mergedLast(name, ids).join(" ")),
    },
  };
}

/** The two tokens whose merge is `name`: the result of applying all earlier merges to its bytes. */
function mergedLast(name: string, ids: ReadonlyMap<string, number>): string[] {
  const parts = [...name];
  while (parts.length > 2) {
    let [best, at] = [Number.POSITIVE_INFINITY, 0];
    for (let i = 0; i + 1 < parts.length; i++) {
      const id = ids.get(parts[i]! + parts[i + 1]!) ?? Number.POSITIVE_INFINITY;
      if (id < best) [best, at] = [id, i];
    }
    parts.splice(at, 2, parts[at]! + parts[at + 1]!);
  }
  return parts;
}
