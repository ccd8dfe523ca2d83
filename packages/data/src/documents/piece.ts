import type { TableOptions } from "./table.ts";

export interface DocumentOptions extends Pick<TableOptions, "passOver"> {
  /** The column of the text, in all but plain text. */
  readonly column: string;
}

/** A text, or a piece of a long one. Pieces are cut where a newline is between two other letters. */
export interface Piece {
  readonly text: string;
  readonly ends: boolean; // whether it is the last of its document
  readonly bytes: number; // of the file, that have been read for it
}

/** A row with keys, as JSON or parquet gives it. */
export interface DocumentRow {
  readonly value: unknown;
  readonly where: string; // file and line, for messages
  readonly bytes: number; // of the file, that have been read for it
}
