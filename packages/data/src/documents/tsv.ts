/** Tab-separated values as GLUE's files have them: a first line of column names, no quotes. */

import { linesOf } from "./lines.ts";
import type { DocumentOptions, Piece } from "./piece.ts";
import { type Cells, type TableOptions, type TableRow, tableRows } from "./table.ts";

async function* cellsOf(path: string): AsyncGenerator<Cells> {
  for await (const { line, number, bytes } of linesOf(path)) yield { cells: line.split("\t"), number, bytes };
}

/** The rows of a .tsv file, with the named columns. Throws `DataError`. */
export const tsvRows = (path: string, columns: readonly string[], options?: TableOptions): AsyncGenerator<TableRow> =>
  tableRows(path, cellsOf(path), columns, options);

export async function* tsvTexts(path: string, { column, passOver }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { values, bytes } of tsvRows(path, [column], { passOver }))
    yield { text: values[0]!, ends: true, bytes };
}
