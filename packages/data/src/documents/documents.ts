/** The texts in a file or folder, one after the other, never all in memory: plain text, jsonl, parquet and tsv. */
import { DataError } from "../data-error.ts";
import { type SizedFile, textFiles } from "../text/text-files.ts";
import { jsonlTexts } from "./jsonl.ts";
import { parquetTexts } from "./parquet.ts";
import { plainText } from "./plain-text.ts";
import { tsvTexts } from "./tsv.ts";

export interface DocumentOptions {
  /** Of jsonl, parquet and tsv: the column of the text. */
  readonly column: string;
}

/** A text, or a piece of a long one. Pieces are cut where a newline is between two other letters. */
export interface Piece {
  readonly text: string;
  readonly ends: boolean; // whether it is the last of its document
  readonly bytes: number; // of the file, that have been read for it
}

type Reader = (path: string, options: DocumentOptions) => AsyncIterable<Piece>;

/** By the ending of a file's name; all others are plain text. */
const readers: Readonly<Record<string, Reader>> = {
  ".jsonl": jsonlTexts,
  ".ndjson": jsonlTexts,
  ".parquet": parquetTexts,
  ".tsv": tsvTexts,
};

const endingOf = (path: string) => Object.keys(readers).find((ending) => path.endsWith(ending));

/** The files that `documents` reads, in order: of a folder, those with columns, or else all text files. Throws `DataError`. */
export async function documentFiles(path: string): Promise<readonly SizedFile[]> {
  const withColumns = await textFiles(path, Object.keys(readers), { binary: true }).catch((error) => {
    if (error instanceof DataError) return undefined;
    throw error;
  });
  return withColumns ?? textFiles(path);
}

/** Whether these files have columns, of which one is the text. Throws `DataError`. */
export const hasColumns = async (path: string): Promise<boolean> =>
  (await documentFiles(path)).some((file) => endingOf(file.path) !== undefined);

export async function* documents(path: string, options: DocumentOptions): AsyncGenerator<Piece> {
  for (const { path: file } of await documentFiles(path)) {
    const ending = endingOf(file);
    yield* ending === undefined ? plainText(file) : readers[ending]!(file, options);
  }
}
