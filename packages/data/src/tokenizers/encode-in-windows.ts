/** The ids of a text of any length. The library takes 170 bytes a letter, so a long text is encoded in windows. */
import type { Encoding } from "tokenizers";
import type { TextContext } from "../dataset.ts";

/** The part of the library's encoding that is used here. Places are counted in code points. */
export type Encoded = Pick<Encoding, "getIds" | "tokenToChars">;

export interface WindowOptions extends Partial<TextContext> {
  readonly letters?: number; // of a window, at most
  readonly overlap?: number; // of two windows
}

/**
 * Two windows are joined in the middle of their overlap, if both have the same tokens at the same places in its middle
 * half. This keeps two things out of the result: what a tokenizer does at the ends of a text, and a token across an
 * edge. Where the windows differ, such as in a word that is longer than a window, the two are encoded as one. Of a text
 * in a context, the tokens that begin in the text are taken.
 */
export async function encodeInWindows(
  piece: string,
  encode: (text: string) => Promise<Encoded>,
  { before = "", after = "", letters = 1 << 19, overlap = 1 << 12 }: WindowOptions = {},
): Promise<Uint32Array> {
  const text = before + piece + after;
  const pieceEnd = before.length + piece.length;
  const window = async (begin: number, end: number) => new Window(begin, await encode(text.slice(begin, end)));
  const ids: number[] = [];
  let end = atCodePoint(text, Math.min(text.length, letters));
  let here = await window(0, end);
  let written = codePoints(before); // of `here`: the tokens that begin before it are in `ids`, or of the context
  let joins = 0;
  while (end < text.length) {
    const begin = atCodePoint(text, end - overlap);
    end = atCodePoint(text, Math.min(text.length, begin + letters));
    const next = await window(begin, end);
    const shift = codePoints(text.slice(here.begin, begin));
    const [low, high] = [overlap / 4, (3 * overlap) / 4];
    const shared = here.places(shift + low, shift + high, shift);
    const from = here.tokenAt(written);
    const to = here.tokenAt(shift + low);
    if (shared === "" || shared !== next.places(low, high, 0) || to < from) {
      end = atCodePoint(text, Math.min(text.length, here.begin + 2 * (end - here.begin)));
      here = await window(here.begin, end);
      // The result so far must end where a token of this window begins. A text without any such place is encoded as a
      // whole.
      if (joins > 0 && here.startOf(here.tokenAt(written)) !== written)
        return encodeInWindows(piece, encode, { before, after, letters: text.length });
    } else {
      const last = pieceEnd < begin + overlap ? here.tokenAt(codePoints(text.slice(here.begin, pieceEnd))) : to;
      for (const id of here.ids.slice(from, Math.min(to, last))) ids.push(id);
      if (last < to) return Uint32Array.from(ids);
      written = next.startOf(next.tokenAt(low));
      here = next;
      joins++;
    }
  }
  const last = after === "" ? here.ids.length : here.tokenAt(codePoints(text.slice(here.begin, pieceEnd)));
  for (const id of here.ids.slice(here.tokenAt(written), last)) ids.push(id);
  return Uint32Array.from(ids);
}

class Window {
  readonly begin: number; // its first letter in the text
  readonly ids: readonly number[];
  readonly #encoded: Encoded;

  constructor(begin: number, encoded: Encoded) {
    this.begin = begin;
    this.ids = encoded.getIds();
    this.#encoded = encoded;
  }

  startOf(token: number): number {
    return this.#encoded.tokenToChars(token)?.[0] ?? 0;
  }

  /** The first token that starts at `place` or behind it: starts do not decrease. */
  tokenAt(place: number): number {
    let [first, end] = [0, this.ids.length];
    while (first < end) {
      const half = (first + end) >> 1;
      if (this.startOf(half) < place) first = half + 1;
      else end = half;
    }
    return first;
  }

  /** The tokens that start in [low, high), and where they start, counted from `origin`. */
  places(low: number, high: number, origin: number): string {
    const places: string[] = [];
    for (let token = this.tokenAt(low); token < this.ids.length && this.startOf(token) < high; token++)
      places.push(`${this.ids[token]} ${this.startOf(token) - origin}`);
    return places.join();
  }
}

const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;

/** The place itself, or the next one where it is inside a surrogate pair. */
const atCodePoint = (text: string, at: number) => (at < text.length && isLow(text.charCodeAt(at)) ? at + 1 : at);

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
