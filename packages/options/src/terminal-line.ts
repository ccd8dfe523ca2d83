/** A line of a terminal that is written again in place: it must not wrap, because only its last row is then replaced. */

interface Out {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Whether lines can be written again in place. A dumb terminal, such as Emacs's shell, shows the commands for it. */
export const isTerminal = (out: Out): boolean => Boolean(out.isTTY) && process.env["TERM"] !== "dumb";

/** The width of a terminal. A serial line, or a container's that was not told its size, has 0. */
export const columnsOf = (out: Out): number => out.columns || 80;

/** Whether text may be bold, dim or coloured: https://no-color.org */
export const hasStyles = (): boolean => !process.env["NO_COLOR"];

/** Marks that stand on the character before them, and East Asian characters and pictures, which take two columns. */
const marks = /\p{Mn}|\p{Me}|\p{Cf}/u;
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** A line of plain text, cut to this many columns. */
export function fitted(text: string, columns: number): string {
  const width = (character: string) => (marks.test(character) ? 0 : wide.test(character) ? 2 : 1);
  let [taken, short] = [0, ""]; // `short`: as much as leaves a column for the dots
  for (const character of text) {
    taken += width(character);
    if (taken > columns) return columns < 1 ? "" : `${short}…`;
    if (taken < columns) short += character;
  }
  return text;
}
