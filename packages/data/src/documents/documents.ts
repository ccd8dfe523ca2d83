/** The texts in files, one after the other, never all in memory: of plain text, jsonl, json, csv, tsv and parquet. */
import type { Form, TextFile } from "../text/text-files.ts";
import { jsonRows } from "./json.ts";
import { jsonlRows } from "./jsonl.ts";
import { parquetRows, parquetTexts } from "./parquet.ts";
import type { DocumentOptions, DocumentRow, Piece } from "./piece.ts";
import { plainText } from "./plain-text.ts";
import { exactJson } from "./read-json.ts";
import { tableTexts } from "./table-file.ts";
import { textsOfRows } from "./text-of-row.ts";

type Reader = (path: string, options: DocumentOptions) => AsyncIterable<Piece>;

const readers: Readonly<Record<Form, Reader>> = {
  plain: plainText,
  jsonl: (path, { column }) => textsOfRows(jsonlRows(path), column),
  json: (path, { column }) => textsOfRows(jsonRows(path), column),
  csv: tableTexts,
  tsv: tableTexts,
  parquet: parquetTexts,
};

/** The documents of files, one after the other, in pieces. Throws `DataError`. */
export async function* documents(files: readonly TextFile[], options: DocumentOptions): AsyncGenerator<Piece> {
  for (const { path, form } of files) yield* readers[form](path, options);
}

/** The rows of files of rows, with bigints for integers; of parquet files only these columns. Throws `DataError`. */
export async function* documentRows(
  files: readonly TextFile[],
  columns: readonly string[],
): AsyncGenerator<DocumentRow> {
  for (const { path, form } of files)
    yield* form === "parquet"
      ? parquetRows(path, columns)
      : form === "json"
        ? jsonRows(path, exactJson)
        : jsonlRows(path, exactJson);
}
