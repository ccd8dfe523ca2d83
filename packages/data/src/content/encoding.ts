/** Finds the encoding of bytes, and the places where they break its rules. */
import { isUtf8 } from "node:buffer";

export type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/** The encoding that a byte order mark names, and the length of the mark; UTF-8 without one. */
export function encodingOf(head: Uint8Array): { encoding: Encoding; mark: number } {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return { encoding: "utf-8", mark: 3 };
  if (head[0] === 0xff && head[1] === 0xfe && !isUtf32(head)) return { encoding: "utf-16le", mark: 2 };
  if (head[0] === 0xfe && head[1] === 0xff) return { encoding: "utf-16be", mark: 2 };
  return { encoding: "utf-8", mark: 0 };
}

const isUtf32 = (head: Uint8Array) => head[0] === 0xff && head[1] === 0xfe && head[2] === 0 && head[3] === 0;

/** Of files of Arrow and Feather, and of streams of Arrow, as save_to_disk of Hugging Face's datasets writes them. */
export const arrow =
  "an Arrow file, which is not read as text: write it as parquet, such as with to_parquet of Hugging Face's datasets";

/** What files begin with that hold no plain text, even without a zero byte, and why they are not read. */
const otherContents: readonly (readonly [beginning: string, why: string])[] = [
  [
    "version https://git-lfs.github.com/spec/v1\n",
    "a pointer of Git LFS in place of the file: git lfs pull fetches it",
  ],
  ["ARROW1\0\0", arrow],
  ["\xFF\xFF\xFF\xFF", arrow],
  ["PAR1", "a parquet file by its content: give it a name that ends in .parquet"],
  ["%PDF-", "a PDF, which is not read as text: pdftotext takes its text out"],
  ["%!PS", "PostScript, which is not read as text: ps2ascii takes its text out"],
  ["{\\rtf", "RTF, which is not read as text: unrtf --text takes its text out"],
];

/**
 * Why these first bytes are not text, or undefined if they are. As for git and grep, text has no zero byte; UTF-16
 * needs its mark.
 */
export function noTextBecause(head: Uint8Array): string | undefined {
  const beginning = Buffer.from(head.subarray(0, 64)).toString("latin1");
  const other = otherContents.find(([begins]) => beginning.startsWith(begins));
  if (other) return other[1];
  if (isUtf32(head)) return "UTF-32, which is not read as text: convert it with iconv -f UTF-32 -t UTF-8";
  if (encodingOf(head).encoding !== "utf-8" || !head.includes(0)) return undefined;
  // In UTF-16 every second byte of Latin letters is zero.
  const zeros = [0, 0];
  for (const [i, byte] of head.entries()) if (byte === 0) zeros[i % 2]!++;
  const [even, odd] = zeros.map((count) => count / (head.length / 2)) as [number, number];
  if (head.length >= 8 && Math.max(even, odd) > 0.4 && Math.min(even, odd) < 0.1)
    return `UTF-16 without a byte order mark, which is not read as text: convert it with iconv -f UTF-16${odd > even ? "LE" : "BE"} -t UTF-8`;
  return "no text, but has zero bytes";
}

/** The place of the first byte that is not UTF-8; the length if all are. */
export function firstWrongUtf8(bytes: Uint8Array): number {
  if (isUtf8(bytes)) return bytes.length;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = buffer.toString("utf8"); // with U+FFFD for what is wrong, or what stood there
  let [at, from] = [0, 0];
  for (;;) {
    const found = text.indexOf("\uFFFD", from);
    at += Buffer.byteLength(text.slice(from, found));
    if (!(buffer[at] === 0xef && buffer[at + 1] === 0xbf && buffer[at + 2] === 0xbd)) return at;
    at += 3;
    from = found + 1;
  }
}

/** The number of bytes at the end that are an incomplete letter. */
export function openLetter(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
