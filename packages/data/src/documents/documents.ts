/** The texts in files, one after the other, never all in memory: of plain text, jsonl, json, csv, tsv and parquet. */
import type { Form, TextFile } from "../text/text-files.ts";
import { csvTexts } from "./csv.ts";
import { jsonTexts } from "./json.ts";
import { jsonlTexts } from "./jsonl.ts";
import { parquetTexts } from "./parquet.ts";
import { plainText } from "./plain-text.ts";
import type { TableOptions } from "./table.ts";
import { tsvTexts } from "./tsv.ts";

export interface DocumentOptions extends Pick<TableOptions, "passOver"> {
  /** Of all but plain text: the column of the text. */
  readonly column: string;
}

/** A text, or a piece of a long one. Pieces are cut where a newline is between two other letters. */
export interface Piece {
  readonly text: string;
  readonly ends: boolean; // whether it is the last of its document
  readonly bytes: number; // of the file, that have been read for it
}

type Reader = (path: string, options: DocumentOptions) => AsyncIterable<Piece>;

const readers: Readonly<Record<Form, Reader>> = {
  plain: plainText,
  jsonl: jsonlTexts,
  json: jsonTexts,
  csv: csvTexts,
  tsv: tsvTexts,
  parquet: parquetTexts,
};

/** Throws `DataError`. */
export async function* documents(files: readonly TextFile[], options: DocumentOptions): AsyncGenerator<Piece> {
  for (const { path, form } of files) yield* readers[form](path, options);
}
