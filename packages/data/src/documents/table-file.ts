import { extname } from "node:path";
import { unpackedName } from "../content/packing.ts";
import { csvCells } from "./csv.ts";
import { linesOf } from "./lines.ts";
import type { DocumentOptions, Piece } from "./piece.ts";
import { type Cells, type TableOptions, type TableRow, tableRows } from "./table.ts";

/** The rows of a .csv or .tsv file, with the values of these columns. Throws `DataError`. */
export function tableFile(path: string, columns: readonly string[], options: TableOptions): AsyncGenerator<TableRow> {
  const isCsv = extname(unpackedName(path)).toLowerCase() === ".csv";
  return tableRows(path, isCsv ? csvCells(path) : tsvCells(path), columns, options);
}

/** The texts of a column of a .csv or .tsv file. Throws `DataError`. */
export async function* tableTexts(path: string, { column, passOver }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { values, bytes } of tableFile(path, [column], { passOver }))
    yield { text: values[0]!, ends: true, bytes };
}

/** Tab-separated values as GLUE's files have them: no quotes. */
async function* tsvCells(path: string): AsyncGenerator<Cells> {
  for await (const { line, number, bytes } of linesOf(path)) yield { cells: line.split("\t"), number, bytes };
}
