import { createReadStream } from "node:fs";
import { DataError, reasonOf } from "../data-error.ts";
import type { Piece } from "./documents.ts";

const pieceLetters = 1 << 20;

/** A file of text as one document, in pieces. Throws `DataError`. */
export async function* plainText(path: string): AsyncGenerator<Piece> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let [text, bytes] = ["", 0];
  for await (const chunk of chunksOf(path)) {
    text += decoder.decode(chunk, { stream: true });
    bytes += chunk.length;
    if (text.length < pieceLetters) continue;
    const cut = lastCut(text);
    if (cut === 0) continue;
    yield { text: text.slice(0, cut), ends: false, bytes };
    [text, bytes] = [text.slice(cut), 0];
  }
  yield { text: text + decoder.decode(), ends: true, bytes };
}

/** The last place after a newline that no white space surrounds; 0 for none. Few tokenizers have tokens across such a place. */
function lastCut(text: string): number {
  for (let at = text.lastIndexOf("\n"); at > 0; at = text.lastIndexOf("\n", at - 1))
    if (/\S\n\S/.test(text.slice(at - 1, at + 2))) return at + 1;
  return 0;
}

/** Throws `DataError`. */
export async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: 1 << 20 });
  } catch (error) {
    throw new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or remove it from the data path.`);
  }
}
