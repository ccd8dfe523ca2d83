import { pipeline, Readable } from "node:stream";
import { CsvError, parse } from "csv-parse";
import { textOfFile } from "../content/text-of-file.ts";
import { DataError } from "../data-error.ts";
import { mostLetters } from "./lines.ts";
import type { Cells } from "./table.ts";

/**
 * The cells of each row of comma-separated values with quotes, RFC 4180, https://www.rfc-editor.org/rfc/rfc4180. Throws
 * `DataError`.
 */
export async function* csvCells(path: string): AsyncGenerator<Cells> {
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
