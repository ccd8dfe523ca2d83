/** Text to bytes and back: 256 tokens, no table, nothing unknown. */
import { DataError } from "./data-error.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const byteTokenizer = {
  vocabulary: 256,

  /** UTF-8. Half a surrogate pair, which UTF-8 cannot say, becomes U+FFFD. */
  encode: (text: string): Uint8Array => encoder.encode(text),

  /** What is not UTF-8 shows as � (U+FFFD). Throws `DataError` for an id outside 0 … 255. */
  decode(ids: Iterable<number | bigint>): string {
    if (ids instanceof Uint8Array) return decoder.decode(ids);
    const bytes = Array.from(ids, Number);
    const wrong = bytes.findIndex((id) => !Number.isInteger(id) || id < 0 || id > 255);
    if (wrong >= 0)
      throw new DataError(`Token ${bytes[wrong]} at position ${wrong} is no byte; byte tokens go from 0 to 255.`);
    return decoder.decode(Uint8Array.from(bytes));
  },
} as const;
