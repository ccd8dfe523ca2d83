import { DataError } from "../data-error.ts";
import type { DocumentRow, Piece } from "./piece.ts";
import { someNames } from "./some-names.ts";

export type Values = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Values =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Date) &&
  !ArrayBuffer.isView(value);

export const kindOf = (value: unknown) =>
  value === null || value === undefined
    ? "null"
    : Array.isArray(value)
      ? "a list"
      : isObject(value)
        ? "an object"
        : value instanceof Date
          ? "a date"
          : ArrayBuffer.isView(value)
            ? "bytes"
            : typeof value === "bigint"
              ? "a number"
              : `a ${typeof value}`;

/** Letters of a text, or of all texts in an object. */
export function lettersOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  const inside: unknown[] = value instanceof Map ? [...value.values()] : Object.values(value);
  return inside.reduce((sum: number, inner) => sum + lettersOf(inner), 0);
}

/** The value of a column, which may be an inner one: "text", "doc.text". */
export function valueIn(row: Values, column: string): unknown {
  if (Object.hasOwn(row, column)) return row[column];
  let value: unknown = row;
  for (const key of column.split(".")) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The names by which the values of a row can be asked for. */
export function columnsOf(row: Values): string[] {
  return Object.entries(row).flatMap(([key, value]) =>
    isObject(value) ? Object.keys(value).map((inner) => `${key}.${inner}`) : [key],
  );
}

/** The keys of rows that hold a conversation, or a question and its answer: what `data.name: chat` reads. */
export const keysOfChats = [
  ["messages"],
  ["conversations"],
  ["prompt", "completion"],
  ["instruction", "output"],
] as const;

/** JSON may have half of a letter that UTF-16 writes as two units, as where a program has cut a text. */
export function checkLetters(text: string, where: string): void {
  if (!text.isWellFormed())
    throw new DataError(
      `${where} has half of a letter (a surrogate without its other one), which is no text; correct the row, or remove it.`,
    );
}

/** The text of a row that JSON or parquet gives. `where` names the row in a message. Throws `DataError`. */
export function textOfRow(row: unknown, column: string, where: string): string {
  if (!isObject(row)) throw new DataError(`${where} is ${kindOf(row)} and no object with keys; remove or correct it.`);
  const text = valueIn(row, column);
  if (typeof text === "string") {
    checkLetters(text, where);
    return text;
  }
  if (text === undefined) {
    const isChat = keysOfChats.some((keys) => keys.every((key) => Object.hasOwn(row, key)));
    const remedy = `${isChat ? "read conversations and answers with data.name=chat, or " : ""}name the text's key with data.column`;
    throw new DataError(`${where} has no text in ${column}, only ${someNames(columnsOf(row))}; ${remedy}.`);
  }
  const inner = isObject(text) ? `, with ${someNames(columnsOf({ [column]: text }))}` : "";
  throw new DataError(
    `${where} has ${kindOf(text)} in ${column}${inner}, and no text; remove the row, or name another column with data.column.`,
  );
}

/** The texts of a column of rows. Throws `DataError`. */
export async function* textsOfRows(rows: AsyncIterable<DocumentRow>, column: string): AsyncGenerator<Piece> {
  for await (const { value, where, bytes } of rows) yield { text: textOfRow(value, column, where), ends: true, bytes };
}
