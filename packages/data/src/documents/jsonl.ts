import { DataError } from "../data-error.ts";
import { linesOf } from "./lines.ts";
import type { DocumentOptions, Piece } from "./piece.ts";
import { textOfRow } from "./text-of-row.ts";

/** The texts of a file with a JSON object in each line. Throws `DataError`. */
export async function* jsonlTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { line, number, bytes } of linesOf(path)) {
    const where = `${path}, line ${number}`;
    yield { text: textOfRow(parsed(line, where), column, where), ends: true, bytes };
  }
}

/** The value of a text of JSON; `where` names the text in errors. Throws `DataError`. */
export function parsed(json: string, where: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new DataError(`${where} is no JSON: ${(error as Error).message}; remove or correct it.`);
  }
}
