/**
 * Netpbm's pictures, which the published sharp does not read: PBM (P1, P4), PGM (P2, P5) and PPM (P3, P6), as text or
 * as bytes, with up to 16 bits a sample. https://netpbm.sourceforge.net/doc/ppm.html
 */
import type { RawPicture } from "./raw-picture.ts";

interface NetpbmHeader {
  readonly width: number;
  readonly height: number;
  readonly kind: 1 | 2 | 3 | 4 | 5 | 6;
  readonly most: number; // the value of white, 1 to 65535
  readonly pixelsAt: number;
}

/** Reads the first bytes of a file. Throws `Error` for what is impossible. */
export function netpbmHeader(first: Uint8Array): NetpbmHeader {
  const words = new Words(first, 2);
  const kind = (first[1]! - 48) as NetpbmHeader["kind"];
  const [width, height] = [words.number("width"), words.number("height")];
  const most = kind === 1 || kind === 4 ? 1 : words.number("largest value");
  if (most < 1 || most > 65535) throw new Error(`its largest value is ${most}, and 1 to 65535 are possible`);
  return { width, height, kind, most, pixelsAt: words.at + 1 };
}

/** Decodes a PPM, PGM or PBM file. Throws `Error` where it is cut short. */
export function decodeNetpbm(bytes: Uint8Array): RawPicture {
  const header = netpbmHeader(bytes);
  const { width, height, kind, most } = header;
  const channels = kind === 3 || kind === 6 ? 3 : 1;
  const next =
    kind === 4 ? bitsOf(bytes, header) : kind < 4 ? wordsOf(bytes, header) : samplesOf(bytes, header, channels);
  const data = new Uint8Array(width * height * 3);
  const scaled = Uint8Array.from({ length: most + 1 }, (_, value) => roundedToEven((value / most) * 255));
  for (let at = 0; at < data.length; at += 3)
    if (channels === 3) for (let c = 0; c < 3; c++) data[at + c] = scaled[next()]!;
    else data.fill(scaled[next()]!, at, at + 3);
  return { width, height, data };
}

/** As Python's `round`. */
const roundedToEven = (x: number) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

const cutShort = () => new Error("it is cut short");

/** Numbers in text, with comments from "#" to the end of a line. */
class Words {
  readonly #bytes: Uint8Array;
  at: number; // the byte behind the last number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  number(what: string): number {
    let value = this.digit(what);
    for (; isDigit(this.#bytes[this.at]); this.at++) {
      value = 10 * value + this.#bytes[this.at]! - 48;
      if (value > 1e9) throw new Error(`its ${what} is larger than a billion`);
    }
    return value;
  }

  /** The next digit; digits need no blank between them. */
  digit(what: string): number {
    for (; ; this.at++) {
      const byte = this.#bytes[this.at];
      if (byte === undefined) throw cutShort();
      if (byte === 35) while (this.at < this.#bytes.length && ![10, 13].includes(this.#bytes[this.at]!)) this.at++;
      else if (isDigit(byte)) return this.#bytes[this.at++]! - 48;
      else if (byte !== 32 && (byte < 9 || byte > 13)) throw new Error(`its ${what} is no number`);
    }
  }
}

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 48 && byte <= 57;

/** Samples in text. In PBM each is one digit, and 1 is black. */
function wordsOf(bytes: Uint8Array, { kind, most, pixelsAt }: NetpbmHeader): () => number {
  const words = new Words(bytes, pixelsAt - 1);
  return () => {
    const value = kind === 1 ? words.digit("pixel") : words.number("pixel");
    if (value > most) throw new Error(`a pixel has ${value}, and ${most} is its largest value`);
    return kind === 1 ? 1 - value : value;
  };
}

/** Samples of a byte, or of two with the upper one first. */
function samplesOf(bytes: Uint8Array, { width, height, most, pixelsAt }: NetpbmHeader, channels: number): () => number {
  const each = most > 255 ? 2 : 1;
  if (pixelsAt + width * height * channels * each > bytes.length) throw cutShort();
  let at = pixelsAt;
  return () => {
    const value = each === 1 ? bytes[at]! : 256 * bytes[at]! + bytes[at + 1]!;
    at += each;
    return Math.min(value, most);
  };
}

/** Pixels of a bit, rows of whole bytes; 1 is black. */
function bitsOf(bytes: Uint8Array, { width, height, pixelsAt }: NetpbmHeader): () => number {
  const rowBytes = Math.ceil(width / 8);
  if (pixelsAt + rowBytes * height > bytes.length) throw cutShort();
  let [x, row] = [0, pixelsAt];
  return () => {
    if (x === width) [x, row] = [0, row + rowBytes];
    const bit = (bytes[row + (x >> 3)]! >> (7 - (x & 7))) & 1;
    x++;
    return 1 - bit;
  };
}
