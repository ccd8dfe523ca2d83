import { textOfFile } from "../content/text-of-file.ts";
import { DataError } from "../data-error.ts";

/** A line without its end, and its number from 1. */
export interface Line {
  readonly line: string;
  readonly number: number;
  /** Bytes of the file that have been read since the line before. */
  readonly bytes: number;
}

/** Letters of the longest line, row or value that is read. A whole book has a million. */
export const mostLetters = 128 << 20;

/** The lines of a text file, without empty ones. Throws `DataError`. */
export async function* linesOf(path: string): AsyncGenerator<Line> {
  let [parts, letters, number, bytes]: [string[], number, number, number] = [[], 0, 0, 0]; // of a line that goes on
  for await (const { text, read } of textOfFile(path)) {
    bytes += read;
    let begin = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", begin)) {
      parts.push(text.slice(begin, end));
      yield* ended();
      begin = end + 1;
    }
    letters += text.length - begin;
    if (letters > mostLetters) throw tooLong(path, `line ${number + 1}`);
    if (begin < text.length) parts.push(text.slice(begin));
  }
  yield* ended();

  function* ended(): Generator<Line> {
    const whole = parts.length === 1 ? parts[0]! : parts.join("");
    [parts, letters] = [[], 0];
    number++;
    const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
    if (line === "") return;
    yield { line, number, bytes };
    bytes = 0;
  }
}

export const tooLong = (path: string, what: string) =>
  new DataError(
    `${path}, ${what} has more than ${mostLetters} letters, the most that is read at once; divide it, or remove it from the data path.`,
  );
