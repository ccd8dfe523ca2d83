/**
 * The training part and the held-out part of a text.
 *
 * The text is cut into up to 64 equal stretches, and the end of each is held out. The end of the whole text alone would often be files of a
 * single package or author, and its loss would say little about the rest; ends of many stretches represent all of the text. A held-out
 * piece has at least 16 KiB, so a short text has a single one: its end.
 */
export interface SplitText {
  readonly train: Uint8Array;
  readonly validation: Uint8Array;
}

const maxPieces = 64;
const minPieceBytes = 16 << 10;

/** Rearranges `bytes` in place into [training stretches | held-out pieces] and returns views of the two parts. */
export function splitText(bytes: Uint8Array, fraction: number): SplitText {
  const held = Math.floor(bytes.length * fraction);
  const pieces = Math.max(1, Math.min(maxPieces, Math.floor(held / minPieceBytes)));
  const validation = new Uint8Array(held);
  const edge = (total: number, i: number) => Math.floor((total * i) / pieces);
  let trainEnd = 0;
  for (let i = 0; i < pieces; i++) {
    const end = edge(bytes.length, i + 1);
    const piece = edge(held, i + 1) - edge(held, i);
    validation.set(bytes.subarray(end - piece, end), edge(held, i));
    const start = edge(bytes.length, i);
    bytes.copyWithin(trainEnd, start, end - piece);
    trainEnd += end - piece - start;
  }
  bytes.set(validation, trainEnd);
  return { train: bytes.subarray(0, trainEnd), validation: bytes.subarray(trainEnd) };
}
