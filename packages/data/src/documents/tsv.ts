/** Tab-separated values as GLUE's files have them: a first line of column names, no quotes. */
import { DataError } from "../data-error.ts";
import type { DocumentOptions, Piece } from "./documents.ts";
import { linesOf } from "./lines.ts";

export interface TsvRow {
  readonly values: readonly string[]; // of the columns that were asked for, in that order
  readonly number: number; // of the line
  readonly bytes: number;
}

/** The rows of a file, with the values of these columns. Throws `DataError`. */
export async function* tsvRows(path: string, columns: readonly string[]): AsyncGenerator<TsvRow> {
  let places: readonly number[] | undefined;
  let width = 0;
  for await (const { line, number, bytes } of linesOf(path)) {
    const cells = line.split("\t");
    if (places === undefined) {
      places = columns.map((column) => cells.indexOf(column));
      const missing = columns.find((_, i) => places![i] === -1);
      if (missing !== undefined)
        throw new DataError(`${path} has no column ${missing}, only ${cells.join(", ")}; name one of them.`);
      width = cells.length;
      continue;
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
