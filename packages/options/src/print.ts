/**
 * Text of others on a terminal: names of files, machines and runs, what a model writes, what a peer reports. A control
 * character in it could clear the screen, write to the clipboard, or show one command and mean another one. Colours are
 * added after this.
 */

import { OptionsError } from "./options-error.ts";

/**
 * All that moves a cursor or begins a command of the terminal, and what changes the direction of the text around it.
 * Newlines and tabs stay.
 */
const commands = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu;

/** A text with a dot in place of each character that commands a terminal; newlines and tabs stay. */
export const printable = (text: string): string => text.replaceAll(commands, "·");

/** `printable` in one line: newlines and tabs become dots too, so that a text cannot imitate the line after it. */
export const printableLine = (text: string): string => printable(text).replaceAll(/[\n\t]/g, "·");

interface Out {
  write(text: string): unknown;
}

/** Prints a line, or several: each of them `printableLine`, so that no name in it begins another line. */
export function print(lines: string | readonly string[], out: Out = process.stdout): void {
  for (const line of typeof lines === "string" ? [lines] : lines) out.write(`${printableLine(line)}\n`);
}

/** Prints a text that has lines of its own, `printable`, and a newline after it. */
export function printText(text: string, out: Out = process.stdout): void {
  out.write(`${printable(text)}\n`);
}

/** The lines of an error's message, each `printableLine`: of options one for each problem, of others a single one. */
export function linesOfError(error: unknown): string[] {
  if (error instanceof OptionsError) return error.lines.map(printableLine);
  return [printableLine(error instanceof Error ? error.message : String(error))];
}
