import { textOfFile } from "../content/text-of-file.ts";
import { DataError } from "../data-error.ts";
import { jsonlRows, parsed, type ReadJson } from "./jsonl.ts";
import { mostLetters, tooLong } from "./lines.ts";
import type { DocumentRow } from "./piece.ts";

/**
 * The rows of a file with one array of objects, or with an object in each line, as pandas and Hugging Face's datasets
 * read .json. Throws `DataError`.
 */
export async function* jsonRows(path: string, read?: ReadJson): AsyncGenerator<DocumentRow> {
  if (!(await beginsWithArray(path))) {
    yield* jsonlRows(path, read);
    return;
  }
  let number = 0;
  for await (const { json, bytes } of elementsOf(path)) {
    const where = `${path}, element ${++number}`;
    yield { value: parsed(json, where, read), where, bytes };
  }
}

async function beginsWithArray(path: string): Promise<boolean> {
  for await (const { text } of textOfFile(path)) {
    const first = /\S/.exec(text);
    if (first) return first[0] === "[";
  }
  return false;
}

interface Element {
  readonly json: string;
  /** Bytes of the file that have been read since the element before. */
  readonly bytes: number;
}

/**
 * The elements of an array that may be larger than memory. Only their ends are looked for; their content is not looked
 * at.
 */
async function* elementsOf(path: string): AsyncGenerator<Element> {
  let [depth, isString, isEscaped, hasEnded, number, bytes] = [0, false, false, false, 0, 0];
  let [parts, letters]: [string[], number] = [[], 0];
  for await (const { text, read } of textOfFile(path)) {
    bytes += read;
    let begin = 0; // of the element, or of what the chunk has of it
    for (let at = 0; at < text.length; at++) {
      const letter = text[at]!;
      if (isString) {
        if (isEscaped) isEscaped = false;
        else if (letter === "\\") isEscaped = true;
        else if (letter === '"') isString = false;
        continue;
      }
      if (hasEnded && /\S/.test(letter))
        throw new DataError(`${path} goes on behind the end of its array, with ${letter}; correct it.`);
      if (letter === '"') isString = true;
      else if (letter === "[" || letter === "{") {
        if (++depth === 1) begin = at + 1;
      } else if (letter === "]" || letter === "}") depth--;
      if ((depth === 1 && letter === ",") || (depth === 0 && letter === "]")) {
        const json = [...parts, text.slice(begin, at)].join("");
        const isAbsent = letter === "]" && number === 0 && json.trim() === ""; // of an empty array
        if (!isAbsent) yield { json, bytes };
        number++;
        [parts, letters, begin] = [[], 0, at + 1];
        bytes = 0;
        hasEnded = depth === 0;
      }
    }
    if (hasEnded) continue;
    letters += text.length - begin;
    if (letters > mostLetters) throw tooLong(path, `element ${number + 1}`);
    parts.push(text.slice(begin));
  }
  if (!hasEnded) throw new DataError(`${path} is cut off in element ${number + 1} of its array; fetch it again.`);
}
