/** The content of a file from beginning to end, never all in memory. Files packed by gzip or zstd are unpacked. */
import { DataError } from "../data-error.ts";
import { PositionalFile } from "../positional-file.ts";
import { packingOf, packingProblem } from "./packing.ts";

const chunkBytes = 1 << 20;
const headBytes = 8192;

export interface Chunk {
  readonly bytes: Uint8Array;
  /** Bytes of the file, that have been read for it. */
  readonly read: number;
}

/** The content of a file in pieces, unpacked where it is packed. Throws `DataError`. */
export async function* contentOfFile(path: string): AsyncGenerator<Chunk> {
  using file = new PositionalFile(path);
  const head = headOf(file);
  const problem = packingProblem(path, head);
  if (problem !== undefined) throw new DataError(`${path} is ${problem}.`);
  let read = 0;
  const told = () => {
    const since = read;
    read = 0;
    return since;
  };
  const stored = (async function* () {
    for (let at = 0; at < file.size; at += chunkBytes) {
      const bytes = file.read(at, Math.min(chunkBytes, file.size - at));
      read += bytes.length;
      yield bytes;
    }
  })();
  const packing = packingOf(head);
  if (packing === undefined) {
    for await (const bytes of stored) yield { bytes, read: told() };
    return;
  }
  let size = 0;
  const unpacked = packing.unpack!(stored);
  try {
    for await (const bytes of unpacked) {
      size += bytes.length;
      yield { bytes, read: told() };
    }
    if (!endsInZeros(file, unpacked.bytesWritten ?? file.size)) throw somethingBehind(path, size);
  } catch (error) {
    throw error instanceof DataError ? error : damaged(path, packing.name, size, error as NodeJS.ErrnoException);
  }
}

/** Whether a file has only zeros from this byte on, as tapes and some programs fill it up. zlib stops before them. */
function endsInZeros(file: PositionalFile, from: number): boolean {
  for (let at = from; at < file.size; at += chunkBytes)
    if (file.read(at, Math.min(chunkBytes, file.size - at)).some((byte) => byte !== 0)) return false;
  return true;
}

const afterBytes = (size: number) => (size > 0 ? `, after ${size} bytes of its content or more` : "");

const somethingBehind = (path: string, size: number) =>
  new DataError(
    `${path} goes on with something else behind what gzip packed${afterBytes(size)}; fetch it again, or unpack it with gunzip, which leaves that out.`,
  );

/** zlib keeps what it has unpacked of a piece in which it finds an error: `size` bytes are whole, and perhaps more. */
function damaged(path: string, packing: string, size: number, { code, message }: NodeJS.ErrnoException): DataError {
  const after = afterBytes(size);
  if (code === "Z_BUF_ERROR") return new DataError(`${path} is cut off${after}; fetch it again.`);
  // The first header was right.
  if (packing === "gzip" && message === "incorrect header check") return somethingBehind(path, size);
  if (code === "ZSTD_error_frameParameter_windowTooLarge")
    return new DataError(
      `${path} was packed with a window of more than 128 MiB, which is not read; unpack it with zstd -d --long=31.`,
    );
  if (code === "ZSTD_error_dictionary_wrong")
    return new DataError(
      `${path} was packed with a dictionary, which is not read; unpack it with zstd -d -D DICTIONARY.`,
    );
  // A dictionary without a number is named in no header.
  const remedy =
    code === "ZSTD_error_corruption_detected"
      ? "fetch it again, or, if it was packed with a dictionary, unpack it with zstd -d -D DICTIONARY"
      : "fetch it again";
  return new DataError(`${path} is damaged as ${packing}${after}: ${message}; ${remedy}.`);
}

const headOf = (file: PositionalFile) => file.read(0, Math.min(headBytes, file.size));

export interface Beginning {
  /** The first bytes of the content, up to 8 KiB. */
  readonly head: Uint8Array;
  readonly isPacked: boolean;
  /** Why the content cannot be read, and what to do. */
  readonly problem?: string;
}

/** Looks into a file. Throws `DataError` where it cannot be read. */
export async function beginningOf(path: string): Promise<Beginning> {
  using file = new PositionalFile(path);
  const head = headOf(file);
  const problem = packingProblem(path, head);
  if (problem !== undefined) return { head, isPacked: true, problem };
  if (packingOf(head) === undefined) return { head, isPacked: false };
  for await (const { bytes } of contentOfFile(path)) {
    const inner = packingOf(bytes);
    const again = inner && `packed by ${inner.name} inside ${packingOf(head)!.name}, which is not read: unpack it`;
    return { head: bytes.subarray(0, headBytes), isPacked: true, ...(again !== undefined && { problem: again }) };
  }
  return { head: new Uint8Array(), isPacked: true, problem: "empty" };
}
