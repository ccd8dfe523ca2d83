/** Rows of tab- or comma-separated values: the first one names the columns. */
import { DataError } from "../data-error.ts";
import { someNames } from "./some-names.ts";

export interface Cells {
  readonly cells: readonly string[];
  readonly number: number; // of the line
  readonly bytes: number; // of the file, that have been read since the row before
}

export interface TableRow {
  readonly values: readonly string[]; // of the columns that were asked for, in that order
  readonly number: number;
  readonly bytes: number;
}

export interface TableOptions {
  readonly header?: boolean;
  /** Hears of each row that is skipped. */
  readonly passOver?: ((path: string, line: number) => void) | undefined;
}

/**
 * The rows of a table, with the values of these columns. Without a header a column is named by its number, from 1. Rows
 * whose number of columns differs from the first line's are skipped, as transformers' QqpProcessor and the "glue" of
 * Hugging Face's datasets do. Throws `DataError`, also where most of the rows would be skipped.
 */
export async function* tableRows(
  path: string,
  rows: AsyncIterable<Cells>,
  columns: readonly string[],
  { header = true, passOver }: TableOptions,
): AsyncGenerator<TableRow> {
  let places: readonly number[] | undefined;
  let [width, read, passed] = [0, 0, 0];
  let first = "";
  for await (const { cells, number, bytes } of rows) {
    if (places === undefined) {
      const names = header ? cells : cells.map((_, i) => String(i + 1));
      places = columns.map((column) => names.indexOf(column));
      const missing = columns.find((_, i) => places![i] === -1);
      if (missing !== undefined)
        throw new DataError(`${path} has no column ${missing}, only ${someNames(names)}; ${wayOut(names)}.`);
      const twice = columns.find((column) => names.indexOf(column) !== names.lastIndexOf(column));
      if (twice !== undefined) throw new DataError(`${path} has two columns ${twice}; rename one of them.`);
      width = cells.length;
      if (header) continue;
    }
    if (cells.length === width) {
      read++;
      yield { values: places.map((place) => cells[place]!), number, bytes };
    } else {
      passed++;
      if (passed === 1) first = `line ${number} has ${cells.length} columns, and the first line has ${width}`;
      passOver?.(path, number);
    }
  }
  if (passed > read)
    throw new DataError(
      `${path}: ${passed} of ${passed + read} rows have a wrong number of columns (${first}); correct them.`,
    );
}

/** One column with a separator in its name is several, which another character separates. */
function wayOut(names: readonly string[]): string {
  const [separator] = (names.length === 1 && /[;,\t|]/.exec(names[0]!)) || [];
  if (separator === undefined) return "name one of them";
  return `if ${JSON.stringify(separator)} separates its columns, write commas (.csv) or tabs (.tsv) in its place`;
}

/** Counts the skipped rows of each file. */
export class SkippedRows {
  readonly #files = new Map<string, { rows: number; first: number }>();

  readonly add = (path: string, line: number): void => {
    const known = this.#files.get(path);
    if (known) known.rows++;
    else this.#files.set(path, { rows: 1, first: line });
  };

  /** A few words for each file. */
  words(nameOf: (path: string) => string): string[] {
    return [...this.#files].map(
      ([path, { rows, first }]) =>
        `${rows} ${rows === 1 ? "row" : "rows"} of ${nameOf(path)} with a wrong number of columns (line ${first}${rows === 1 ? "" : " …"})`,
    );
  }
}
