/** Tokenizers by the word that recipes use: bytes, gpt2, or the path of a tokenizer.json or of a folder with one. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { byteTokenizer } from "./byte-tokenizer.ts";
import { gpt2EndOfText, gpt2Tokenizer, gpt2Vocabulary } from "./gpt2-tokenizer.ts";
import { openTokenizerJson } from "./open-tokenizer-json.ts";
import { idsIn, readTokenizerJson, sizeOf } from "./tokenizer-json.ts";

interface Known {
  readonly vocabulary: number;
  open(): Promise<Tokenizer>;
  /** The id of a token by its text; undefined for none. */
  idOf(content: string): number | undefined;
}

const known: Readonly<Record<string, Known>> = {
  bytes: {
    vocabulary: byteTokenizer.vocabulary,
    open: async () => byteTokenizer,
    idOf: (content) => (content.length === 1 && content < "\x80" ? content.charCodeAt(0) : undefined),
  },
  gpt2: {
    vocabulary: gpt2Vocabulary,
    open: gpt2Tokenizer,
    idOf: (content) => (content === "<|endoftext|>" ? gpt2EndOfText : undefined),
  },
};

export const fileOf = (path: string) =>
  existsSync(path) && statSync(path).isDirectory() ? join(path, "tokenizer.json") : path;

/**
 * Opens a tokenizer: "bytes", "gpt2", or the path of a tokenizer.json or of its folder. Between two texts stands the
 * token that `endOfText` names, or else the tokenizer's own. Throws `DataError`.
 */
export async function openTokenizer(
  name: string,
  { endOfText }: { endOfText?: string | undefined } = {},
): Promise<Tokenizer> {
  const opened = await (known[name]?.open() ?? openTokenizerJson(fileOf(name)));
  if (endOfText === undefined) return opened;
  const id = known[name] ? known[name].idOf(endOfText) : idsIn(readTokenizerJson(fileOf(name)), [endOfText])[0];
  if (id !== undefined) return { ...opened, endOfText: id };
  throw new DataError(
    `The end of a text, ${JSON.stringify(endOfText)}, is no token of ${name}; name one of its tokens, or leave it out.`,
  );
}

/** The number of tokens of a tokenizer, named as in `openTokenizer`. Reads the file of a path. Throws `DataError`. */
export const vocabularyOf = (name: string): number =>
  known[name]?.vocabulary ?? sizeOf(readTokenizerJson(fileOf(name)));

/** The tokens that BERT adds to texts. Those that a tokenizer lacks come behind its vocabulary. */
export interface BertTokens {
  readonly vocabulary: number; // with them
  readonly classify: number; // [CLS]: the first token of a row
  readonly separate: number; // [SEP]: the last one of each sentence
  readonly mask: number; // [MASK]
  readonly pad: number; // [PAD]
}

export const bertContents = { classify: "[CLS]", separate: "[SEP]", mask: "[MASK]", pad: "[PAD]" } as const;

/** The tokens that BERT adds, of a tokenizer named as in `openTokenizer`. Throws `DataError`. */
export function bertTokens(name: string): BertTokens {
  const contents = Object.values(bertContents);
  let vocabulary = vocabularyOf(name);
  const found = known[name] ? contents.map(() => undefined) : idsIn(readTokenizerJson(fileOf(name)), contents);
  const [classify, separate, mask, pad] = found.map((id) => id ?? vocabulary++) as [number, number, number, number];
  return { vocabulary, classify, separate, mask, pad };
}
