/** Tab-separated values as GLUE's files have them: a first line of column names, no quotes. */
import { DataError } from "../data-error.ts";
import type { DocumentOptions, Piece } from "./documents.ts";
import { linesOf } from "./lines.ts";

export interface TsvRow {
  readonly values: readonly string[]; // of the columns that were asked for, in that order
  readonly number: number; // of the line
  readonly bytes: number;
}

/** The rows of a file, with the values of these columns. Without a header a column is named by its number, from 1. Throws `DataError`. */
export async function* tsvRows(
  path: string,
  columns: readonly string[],
  { header = true }: { header?: boolean } = {},
): AsyncGenerator<TsvRow> {
  let places: readonly number[] | undefined;
  let width = 0;
  for await (const { line, number, bytes } of linesOf(path)) {
    const cells = line.split("\t");
    if (places === undefined) {
      const names = header ? cells : cells.map((_, i) => String(i + 1));
      places = columns.map((column) => names.indexOf(column));
      const missing = columns.find((_, i) => places![i] === -1);
      if (missing !== undefined)
        throw new DataError(`${path} has no column ${missing}, only ${names.join(", ")}; name one of them.`);
      width = cells.length;
      if (header) continue;
    }
    if (cells.length !== width)
      throw new DataError(
        `${path}, line ${number} has ${cells.length} columns, and the first line has ${width}; correct it.`,
      );
    yield { values: places.map((place) => cells[place]!), number, bytes };
  }
}

export async function* tsvTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { values, bytes } of tsvRows(path, [column])) yield { text: values[0]!, ends: true, bytes };
}
