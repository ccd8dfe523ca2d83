/**
 * What is trained on, and what is only evaluated on.
 *
 * The text is cut into up to 64 equal stretches and the end of each is held out. The end of the whole text alone, the
 * usual choice for one book, would be a single author's or package's files in a folder, and its loss would say little
 * about the rest; many small ends see all of it. Each held-out piece keeps at least 16 KiB, so a short text has one piece:
 * its end.
 */
export interface SplitText {
  readonly train: Uint8Array;
  readonly validation: Uint8Array;
}

const mostPieces = 64;
const leastPiece = 16 << 10;

/** Rearranges `bytes` in place into [all training stretches | all held-out pieces] and gives both parts as views. */
export function splitText(bytes: Uint8Array, fraction: number): SplitText {
  const held = Math.floor(bytes.length * fraction);
  const pieces = Math.max(1, Math.min(mostPieces, Math.floor(held / leastPiece)));
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
