import { DataError } from "../data-error.ts";
import type { DocumentOptions, Piece } from "./documents.ts";
import { linesOf } from "./lines.ts";

/** The texts of a file with a JSON object in each line. Throws `DataError`. */
export async function* jsonlTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { line, number, bytes } of linesOf(path)) {
    let row: Record<string, unknown>;
    try {
      row = JSON.parse(line) as Record<string, unknown>;
    } catch (error) {
      throw new DataError(`${path}, line ${number} is no JSON: ${(error as Error).message}; remove or correct it.`);
    }
    const text = row?.[column];
    if (typeof text !== "string") {
      const has = Object.keys(row ?? {}).join(", ");
      throw new DataError(
        `${path}, line ${number} has no text in ${column}, only ${has || "nothing"}; name the text's key with data.column.`,
      );
    }
    yield { text, ends: true, bytes };
  }
}
