import { textOfFile } from "../content/text-of-file.ts";
import { mostLetters, tooLong } from "./lines.ts";
import type { Piece } from "./piece.ts";

const pieceLetters = 1 << 20;

/** A file of text as one document, in pieces. Throws `DataError`. */
export async function* plainText(path: string): AsyncGenerator<Piece> {
  let [parts, letters, searched, bytes]: [string[], number, number, number] = [[], 0, 0, 0];
  for await (const { text, read } of textOfFile(path)) {
    parts.push(text);
    letters += text.length;
    bytes += read;
    if (letters < pieceLetters) continue;
    const from = Math.max(0, searched - 2); // of the letters before it none is a cut
    if (searched === 0) parts = [parts.join("")];
    const end = searched === 0 ? parts[0]! : parts.at(-2)!.slice(-2) + text;
    const begin = searched === 0 ? 0 : from;
    let cut = lastCut(end, "\n");
    if (cut > 0) cut += begin;
    else if (letters > mostLetters) {
      parts = [parts.join("")];
      cut = lastCut(parts[0]!, " ");
      if (cut === 0) throw tooLong(path, "a stretch without a blank");
    }
    searched = letters;
    if (cut === 0) continue;
    const whole = parts.join("");
    yield { text: whole.slice(0, cut), ends: false, bytes };
    [parts, letters, searched, bytes] = [[whole.slice(cut)], whole.length - cut, 0, 0];
  }
  yield { text: parts.join(""), ends: true, bytes };
}

/**
 * The last place to cut: at a newline or a blank without white space on either side; 0 for none. Few tokenizers have
 * tokens across such a place.
 */
function lastCut(text: string, at: "\n" | " "): number {
  for (let place = text.lastIndexOf(at); place > 0; place = text.lastIndexOf(at, place - 1))
    if (/\S\s\S/.test(text.slice(place - 1, place + 2))) return at === "\n" ? place + 1 : place;
  return 0;
}
