/**
 * The text of a file from beginning to end, never all in memory: UTF-8, or UTF-16 with a byte order mark. A mark is no
 * part of the text. Anything else is an error: a letter that is replaced in silence would be trained on for ever.
 */
import { isUtf8 } from "node:buffer";
import { DataError } from "../data-error.ts";
import { contentOfFile } from "./content-of-file.ts";
import { encodingOf, firstWrongUtf8, noTextBecause, openLetter } from "./encoding.ts";

export interface TextChunk {
  readonly text: string;
  /** Bytes of the file, that have been read for it. */
  readonly read: number;
}

/** The text of a file in pieces, from UTF-8 or UTF-16. Throws `DataError`. */
export async function* textOfFile(path: string): AsyncGenerator<TextChunk> {
  let decode: ((bytes: Uint8Array, isLast: boolean) => string) | undefined;
  for await (let { bytes, read } of contentOfFile(path)) {
    if (decode === undefined) {
      const problem = noTextBecause(bytes.subarray(0, 8192));
      if (problem !== undefined) throw new DataError(`${path} is ${problem}.`);
      const { encoding, mark } = encodingOf(bytes);
      decode = encoding === "utf-8" ? utf8(path, mark) : utf16(path, encoding, mark);
      bytes = bytes.subarray(mark);
    }
    yield { text: decode(bytes, false), read };
  }
  if (decode !== undefined) yield { text: decode(new Uint8Array(), true), read: 0 };
}

/** Decodes one chunk after the other; `at` is the place of the first. */
function utf8(path: string, at: number) {
  let line = 1;
  let open: Uint8Array = new Uint8Array(); // of a letter that the next chunk ends
  return (chunk: Uint8Array, isLast: boolean): string => {
    const bytes = open.length === 0 ? chunk : Buffer.concat([open, chunk]);
    const whole = bytes.subarray(0, bytes.length - (isLast ? 0 : openLetter(bytes)));
    if (!isUtf8(whole)) {
      const place = firstWrongUtf8(whole);
      line += newlinesIn(whole.subarray(0, place));
      if (isLast && place === whole.length - openLetter(whole))
        throw new DataError(
          `${path} is cut off in the middle of a letter, at byte ${at + place} (line ${line}); fetch it again.`,
        );
      const byte = `0x${whole[place]!.toString(16).toUpperCase().padStart(2, "0")}`;
      throw new DataError(
        `${path} is not UTF-8: byte ${at + place} (line ${line}) is ${byte}; convert it from its own encoding (of Latin-1: iconv -f LATIN1 -t UTF-8), or remove it from the data path.`,
      );
    }
    open = bytes.slice(whole.length);
    at += whole.length;
    line += newlinesIn(whole);
    return Buffer.from(whole.buffer, whole.byteOffset, whole.length).toString("utf8");
  };
}

function utf16(path: string, encoding: "utf-16le" | "utf-16be", at: number) {
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  return (chunk: Uint8Array, isLast: boolean): string => {
    try {
      const text = decoder.decode(chunk, { stream: !isLast });
      at += chunk.length;
      return text;
    } catch {
      const place = isLast ? "at its end" : `between byte ${at} and byte ${at + chunk.length}`;
      throw new DataError(
        `${path} is not ${encoding.toUpperCase()}: ${place} half a letter is missing; fetch it again.`,
      );
    }
  };
}

function newlinesIn(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count++;
  return count;
}
