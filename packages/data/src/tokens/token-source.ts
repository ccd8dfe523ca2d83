import { DataError } from "../data-error.ts";

export type Tokens = Uint8Array | Uint16Array | Uint32Array;

/** A stretch of token ids, in memory or in a file. */
export interface TokenSource {
  readonly name: string; // for messages
  readonly length: number;
  /** `count` tokens from `start` on. Throws `DataError`. */
  read(start: number, count: number): Promise<Tokens> | Tokens;
  close?(): Promise<void>;
}

export const tokensInMemory = (name: string, tokens: Tokens): TokenSource => ({
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
  const begins = new Float64Array(sources.length + 1); // of each source, and the end of the last
  for (const [i, { length }] of sources.entries()) begins[i + 1] = begins[i]! + length;
  return {
    name,
    length: begins[sources.length]!,
    async read(start, count) {
      const parts: Tokens[] = [];
      for (let i = lastAtMost(begins, start); i < sources.length && begins[i]! < start + count; i++) {
        const from = Math.max(start, begins[i]!);
        const to = Math.min(start + count, begins[i + 1]!);
        if (from < to) parts.push(await sources[i]!.read(from - begins[i]!, to - from));
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

/** The last place of ascending numbers whose number is `most` or less. */
function lastAtMost(numbers: Float64Array, most: number): number {
  let [low, high] = [0, numbers.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! <= most) low = middle;
    else high = middle;
  }
  return low;
}

/** `count` tokens from `start` on. Throws `DataError` for one that is not below `vocabulary`. */
export async function readChecked(
  source: TokenSource,
  start: number,
  count: number,
  vocabulary: number,
): Promise<Tokens> {
  const tokens = await source.read(start, count);
  const wrong = tokens.findIndex((token) => token >= vocabulary);
  if (wrong >= 0)
    throw new DataError(
      `${source.name}: token ${start + wrong} is ${tokens[wrong]}, and the vocabulary has ${vocabulary} tokens; name the tokenizer that wrote the file (data.tokenizer, and data.vocabulary of data.name: tokens).`,
    );
  return tokens;
}
