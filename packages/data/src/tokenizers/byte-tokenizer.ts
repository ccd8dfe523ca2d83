/** Text to bytes and back: 256 tokens, without a vocabulary file. */
import { checkedIds } from "./checked-ids.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The tokenizer whose tokens are bytes: 256 tokens, and no file. */
export const byteTokenizer = {
  vocabulary: 256,

  /** UTF-8. Half of a surrogate pair, which UTF-8 cannot represent, becomes U+FFFD. */
  encode: (text: string): Uint8Array => encoder.encode(text),

  /** Bytes that are not UTF-8 become � (U+FFFD). Throws `DataError` for an id outside 0 … 255. */
  decode(ids: Iterable<number | bigint>): string {
    if (ids instanceof Uint8Array) return decoder.decode(ids);
    return decoder.decode(Uint8Array.from(checkedIds(ids, 256, "is not a byte")));
  },
} as const;
