/** Reads files into one array, without other buffers. Files may be larger than 2 GiB. */
import { open } from "node:fs/promises";
import { DataError, reasonOf } from "./data-error.ts";

export interface SizedFile {
  readonly path: string;
  readonly size: number; // bytes
}

const newline = 10;
const largestRead = 1 << 30; // one system call reads less than 2 GiB

/** Joins files in the given order, with a newline after each that does not end with one. Throws `DataError`. */
export async function readFiles(files: readonly SizedFile[]): Promise<Uint8Array> {
  const total = files.reduce((sum, { size }) => sum + size + 1, 0);
  const bytes = new Uint8Array(total);
  let end = 0;
  for (const [index, { path, size }] of files.entries()) {
    await readInto(bytes.subarray(end, end + size), path);
    end += size;
    if (index < files.length - 1 && size > 0 && bytes[end - 1] !== newline) bytes[end++] = newline;
  }
  return bytes.subarray(0, end);
}

/** Reads the first `target.length` bytes of a file, at most `largest` per system call. Throws `DataError`. */
export async function readInto(target: Uint8Array, path: string, largest = largestRead): Promise<void> {
  try {
    await using file = await open(path, "r");
    for (let at = 0; at < target.length; ) {
      const length = Math.min(target.length - at, largest);
      const { bytesRead } = await file.read(target, at, length, at);
      if (bytesRead === 0)
        throw new DataError(
          `${path} became shorter while it was read; start again when no other program writes to it.`,
        );
      at += bytesRead;
    }
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or remove it from the data path.`);
  }
}
