/**
 * Text of others on a terminal: names of files, machines and runs, what a model writes, what a peer reports. A control
 * character in it could clear the screen, write to the clipboard, or show one command and mean another one. Colours are
 * added after this.
 */

/**
 * All that moves a cursor or begins a command of the terminal, and what changes the direction of the text around it.
 * Newlines and tabs stay.
 */
const commands = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu;

/** The same text with a dot for each such character. */
export const printable = (text: string): string => text.replaceAll(commands, "·");

/** The same in one line, for a text that could look like the next one. */
export const printableLine = (text: string): string => printable(text).replaceAll(/[\n\t]/g, "·");

/** Prints a text that may have several lines, and the end of the last one. */
export function print(text: string, out: { write(text: string): unknown } = process.stdout): void {
  out.write(`${printable(text)}\n`);
}
