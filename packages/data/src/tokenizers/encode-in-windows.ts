/** The ids of a text of any length. The library takes 170 bytes of memory for each letter, so a long text is encoded in windows. */
import type { Encoding } from "tokenizers";

/** What is asked of the library's encoding. Places are counted in code points. */
export type Encoded = Pick<Encoding, "getIds" | "tokenToChars">;

export interface WindowSizes {
  readonly letters: number; // of a window, at most
  readonly overlap: number; // of two windows
}

/**
 * Two windows are joined in the middle of their overlap, if both have the same tokens at the same places in its middle half. So what a
 * tokenizer does at the beginning and the end of a text, and a token across an edge, stay out of the result. Where they differ, such as
 * in a word that is longer than a window, the two are encoded as one.
 */
export async function encodeInWindows(
  text: string,
  encode: (text: string) => Promise<Encoded>,
  { letters, overlap }: WindowSizes = { letters: 1 << 19, overlap: 1 << 12 },
): Promise<Uint32Array> {
  if (text.length <= letters) return Uint32Array.from((await encode(text)).getIds());
  const window = async (begin: number, end: number) => new Window(begin, await encode(text.slice(begin, end)));
  const ids: number[] = [];
  let end = atCodePoint(text, letters);
  let here = await window(0, end);
  let written = 0; // code points of `here` whose tokens are in `ids`
  while (end < text.length) {
    const begin = atCodePoint(text, end - overlap);
    end = atCodePoint(text, Math.min(text.length, begin + letters));
    const next = await window(begin, end);
    const before = codePoints(text.slice(here.begin, begin));
    const [low, high] = [overlap / 4, (3 * overlap) / 4];
    const shared = here.places(before + low, before + high, before);
    const from = here.tokenAt(written);
    const to = here.tokenAt(before + low);
    if (shared === "" || shared !== next.places(low, high, 0) || to < from) {
      here = await window(here.begin, end);
      // What was written must be what this window begins with; a text without any such place is encoded as a whole.
      if (written > 0 && here.startOf(here.tokenAt(written)) !== written)
        return Uint32Array.from((await encode(text)).getIds());
    } else {
      for (const id of here.ids.slice(from, to)) ids.push(id);
      written = next.startOf(next.tokenAt(low));
      here = next;
    }
  }
  for (const id of here.ids.slice(here.tokenAt(written))) ids.push(id);
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
