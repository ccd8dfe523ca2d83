import { DataError } from "../data-error.ts";

/** A stretch of token ids, in memory or in a file. */
export interface TokenSource {
  readonly name: string; // for messages
  readonly length: number;
  /** `count` tokens from `start` on. Throws `DataError`. */
  read(start: number, count: number): Promise<Uint16Array | Uint32Array> | Uint16Array | Uint32Array;
  close?(): Promise<void>;
}

export const tokensInMemory = (name: string, tokens: Uint16Array | Uint32Array): TokenSource => ({
  name,
  length: tokens.length,
  read: (start, count) => tokens.subarray(start, start + count),
});

/** Tokens `begin` to `end` of another source. */
export const part = (source: TokenSource, begin: number, end: number): TokenSource => ({
  name: source.name,
  length: end - begin,
  read: (start, count) => source.read(begin + start, count),
  close: async () => source.close?.(),
});

/** Several sources as one. */
export function joined(name: string, sources: readonly TokenSource[]): TokenSource {
  return {
    name,
    length: sources.reduce((sum, { length }) => sum + length, 0),
    async read(start, count) {
      const parts: (Uint16Array | Uint32Array)[] = [];
      let begin = 0; // of a source, in all of them
      for (const source of sources) {
        const from = Math.max(start, begin) - begin;
        const to = Math.min(start + count - begin, source.length);
        if (from < to) parts.push(await source.read(from, to - from));
        begin += source.length;
      }
      if (parts.length === 1) return parts[0]!;
      const all = new Uint32Array(count);
      let at = 0;
      for (const part of parts) {
        all.set(part, at);
        at += part.length;
      }
      return all;
    },
    async close() {
      for (const source of sources) await source.close?.();
    },
  };
}

/** `count` tokens from `start` on. Throws `DataError` for one that is not below `vocabulary`. */
export async function readChecked(
  source: TokenSource,
  start: number,
  count: number,
  vocabulary: number,
): Promise<Uint16Array | Uint32Array> {
  const tokens = await source.read(start, count);
  const wrong = tokens.findIndex((token) => token >= vocabulary);
  if (wrong >= 0)
    throw new DataError(
      `${source.name}: token ${start + wrong} is ${tokens[wrong]}, and the vocabulary has ${vocabulary} tokens; name the tokenizer that wrote the file (data.tokenizer, and data.vocabulary of data.name: tokens).`,
    );
  return tokens;
}
