/**
 * Comma-separated values with quotes, RFC 4180, https://www.rfc-editor.org/rfc/rfc4180; the first row names the
 * columns.
 */
import { pipeline, Readable } from "node:stream";
import { CsvError, parse } from "csv-parse";
import { textOfFile } from "../content/text-of-file.ts";
import { DataError } from "../data-error.ts";
import { mostLetters } from "./lines.ts";
import type { DocumentOptions, Piece } from "./piece.ts";
import { type Cells, type TableOptions, type TableRow, tableRows } from "./table.ts";

/** The cells of each row of a .csv file, that of the columns' names among them. Throws `DataError`. */
async function* cellsOf(path: string): AsyncGenerator<Cells> {
  let bytes = 0;
  const text = (async function* () {
    for await (const chunk of textOfFile(path)) {
      bytes += chunk.read;
      if (chunk.text !== "") yield chunk.text;
    }
  })();
  const parser = parse({
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: mostLetters,
    record_delimiter: ["\r\n", "\n", "\r"], // a file may have several, which no first row shows
  });
  try {
    for await (const { record, info } of pipeline(Readable.from(text), parser, () => {})) {
      yield { cells: record as string[], number: (info as { lines: number }).lines, bytes };
      bytes = 0;
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new DataError(`${path} is no CSV: ${error.message}; correct it.`);
  }
}

/** The rows of a .csv file, with the named columns. Throws `DataError`. */
export const csvRows = (path: string, columns: readonly string[], options?: TableOptions): AsyncGenerator<TableRow> =>
  tableRows(path, cellsOf(path), columns, options);

export async function* csvTexts(path: string, { column, passOver }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { values, bytes } of csvRows(path, [column], { passOver }))
    yield { text: values[0]!, ends: true, bytes };
}
