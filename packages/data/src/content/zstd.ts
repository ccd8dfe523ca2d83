/**
 * The content of a zstd file, which may have many frames, as pzstd and `cat a.zst b.zst` write them. Node's
 * decompressor stops after the first one, so the frames are separated here. RFC 8878, section 3.1,
 * https://www.rfc-editor.org/rfc/rfc8878#section-3.1
 */
import { pipeline, Readable } from "node:stream";
import zlib from "node:zlib";
import { DataError } from "../data-error.ts";

/** Bytes of one frame; `ends` after its last one. */
interface Piece {
  readonly bytes: Uint8Array;
  readonly ends: boolean;
}

/** Unpacks zstd, of one frame or several. Throws what zlib throws, and `DataError` where this Node has no zstd. */
export async function* zstdContent(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (typeof zlib.createZstdDecompress !== "function")
    throw new DataError(`Node ${process.versions.node} has no zstd; use Node 22.15 or newer, or unpack the data.`);
  const pieces = piecesOf(source);
  try {
    for (let first = await pieces.next(); !first.done; first = await pieces.next())
      yield* pipeline(Readable.from(frame(first.value, pieces)), zlib.createZstdDecompress(), () => {});
  } finally {
    await pieces.return(undefined);
  }
}

/** The bytes of the frame that begins with `piece`. */
async function* frame(piece: Piece, more: AsyncGenerator<Piece>): AsyncGenerator<Uint8Array> {
  for (;;) {
    yield piece.bytes;
    if (piece.ends) return;
    const next = await more.next();
    if (next.done) return;
    piece = next.value;
  }
}

/** Cuts the source where a frame ends. */
async function* piecesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Piece> {
  let walk = fieldsOfFrame();
  let field = walk.next().value as Field;
  let read = 0; // bytes of the field
  const kept = new Uint8Array(4);
  for await (const chunk of source) {
    let [begin, at] = [0, 0];
    while (at < chunk.length) {
      const take = Math.min(field.bytes - read, chunk.length - at);
      if (field.isRead) kept.set(chunk.subarray(at, at + take), read);
      [read, at] = [read + take, at + take];
      if (read < field.bytes) break;
      const next = walk.next(new DataView(kept.buffer));
      if (next.done) {
        yield { bytes: chunk.subarray(begin, at), ends: true };
        begin = at;
        walk = fieldsOfFrame();
      }
      field = next.done ? (walk.next().value as Field) : next.value;
      [read] = [0];
      kept.fill(0);
    }
    if (begin < chunk.length) yield { bytes: chunk.subarray(begin), ends: false };
  }
}

interface Field {
  readonly bytes: number; // 1 or more
  /** Whether the parser of the frame reads the bytes of this field, 4 at most. Others are skipped. */
  readonly isRead: boolean;
}

const read = (bytes: number): Field => ({ bytes, isRead: true });
const pass = (bytes: number): Field[] => (bytes > 0 ? [{ bytes, isRead: false }] : []);

/** The fields of one frame, one after the other. The generator is given the bytes of the fields that it reads. */
function* fieldsOfFrame(): Generator<Field, void, DataView> {
  const magic = (yield read(4)).getUint32(0, true);
  if (magic >>> 4 === 0x184d2a5) {
    yield* pass((yield read(4)).getUint32(0, true)); // a skippable frame
    return;
  }
  if (magic !== 0xfd2fb528) throw new Error("something else follows a frame");
  const descriptor = (yield read(1)).getUint8(0);
  const isSingleSegment = (descriptor >> 5) & 1;
  const contentSize = [isSingleSegment, 2, 4, 8][descriptor >> 6]!;
  const dictionary = [0, 1, 2, 4][descriptor & 3]!;
  yield* pass(1 - isSingleSegment + dictionary + contentSize);
  for (let isLast = false; !isLast; ) {
    const header = (yield read(3)).getUint32(0, true);
    isLast = (header & 1) === 1;
    const isRepeatedByte = ((header >> 1) & 3) === 1;
    yield* pass(isRepeatedByte ? 1 : header >> 3);
  }
  yield* pass((descriptor >> 2) & 1 ? 4 : 0); // the checksum
}
