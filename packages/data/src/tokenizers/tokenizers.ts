/** Tokenizers by the word that recipes use: bytes, gpt2, or the path of a tokenizer.json or of a folder with one. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Tokenizer } from "../dataset.ts";
import { byteTokenizer } from "./byte-tokenizer.ts";
import { gpt2Tokenizer, gpt2Vocabulary } from "./gpt2-tokenizer.ts";
import { openTokenizerJson } from "./open-tokenizer-json.ts";
import { idsIn, readTokenizerJson, vocabularyOfJson } from "./tokenizer-json.ts";

const known: Readonly<Record<string, { vocabulary: number; open(): Promise<Tokenizer> }>> = {
  bytes: { vocabulary: byteTokenizer.vocabulary, open: async () => byteTokenizer },
  gpt2: { vocabulary: gpt2Vocabulary, open: gpt2Tokenizer },
};

export const fileOf = (path: string) =>
  existsSync(path) && statSync(path).isDirectory() ? join(path, "tokenizer.json") : path;

/** Throws `DataError`. */
export const openTokenizer = (name: string): Promise<Tokenizer> =>
  known[name]?.open() ?? openTokenizerJson(fileOf(name));

/** Number of tokens. Of a path, its file is read. Throws `DataError`. */
export const vocabularyOf = (name: string): number => known[name]?.vocabulary ?? vocabularyOfJson(fileOf(name));

/** The tokens that BERT adds to texts. Those that a tokenizer lacks come behind its vocabulary. */
export interface BertTokens {
  readonly vocabulary: number; // with them
  readonly classify: number; // [CLS]: the first token of a row
  readonly separate: number; // [SEP]: the last one of each sentence
  readonly mask: number; // [MASK]
  readonly pad: number; // [PAD]
}

export const bertContents = { classify: "[CLS]", separate: "[SEP]", mask: "[MASK]", pad: "[PAD]" } as const;

/** Throws `DataError`. */
export function bertTokens(name: string): BertTokens {
  const contents = Object.values(bertContents);
  let vocabulary = vocabularyOf(name);
  const found = known[name] ? contents.map(() => undefined) : idsIn(readTokenizerJson(fileOf(name)), contents);
  const [classify, separate, mask, pad] = found.map((id) => id ?? vocabulary++) as [number, number, number, number];
  return { vocabulary, classify, separate, mask, pad };
}
