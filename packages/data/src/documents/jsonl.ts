import { DataError } from "../data-error.ts";
import { linesOf } from "./lines.ts";
import type { DocumentRow } from "./piece.ts";
import { plainJson } from "./read-json.ts";

/** Reads a text of JSON. */
export type ReadJson = (json: string) => unknown;

/** The rows of a file with a JSON object in each line. Throws `DataError`. */
export async function* jsonlRows(path: string, read?: ReadJson): AsyncGenerator<DocumentRow> {
  let passed = 0; // bytes of lines of blanks, which are none, as for pandas and Hugging Face's datasets
  for await (const { line, number, bytes } of linesOf(path)) {
    passed += bytes;
    if (line.trim() === "") continue;
    const where = `${path}, line ${number}`;
    if (line.trim() === "{")
      throw new DataError(
        `${where} begins an object that goes on in the lines below; write each object into one line, as jq -c . does (jq -c '.data[]' for those of a list in it, data).`,
      );
    yield { value: parsed(line, where, read), where, bytes: passed };
    passed = 0;
  }
}

/** The value of a text of JSON; `where` names the text in errors. Throws `DataError`. */
export function parsed(json: string, where: string, read: ReadJson = plainJson): unknown {
  try {
    return read(json);
  } catch (error) {
    throw new DataError(`${where} is no JSON: ${(error as Error).message}; remove or correct it.`);
  }
}
