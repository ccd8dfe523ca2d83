/** What both preparations have in common: files that are written beside their names first, and the bytes read so far. */
import { existsSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { DataError } from "../data-error.ts";
import { makeFolder } from "../make-folder.ts";
import type { TextFile } from "../text/text-files.ts";
import type { Progress } from "./fetch-source.ts";

const mostTokens = 2 ** 31 - 1; // headers count them as an i32

/** Throws `DataError` for more tokens of `path` than one file may have. */
export function checkCount(count: number, path: string): void {
  if (count > mostTokens)
    throw new DataError(
      `${path} has more than ${mostTokens} tokens, the most of one file; prepare parts of it into several folders.`,
    );
}

/** Makes the folder of new files. Throws `DataError` where one of them is there already. */
export function makePlaceFor(folder: string, paths: readonly string[]): void {
  for (const path of paths)
    if (existsSync(path))
      throw new DataError(`${path} is there already; remove it, or name another folder with --out.`);
  makeFolder(folder);
}

/** Tells `progress` of more bytes that have been read of files. */
export function counting(files: readonly TextFile[], progress: Progress): (bytes: number) => void {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  let read = 0;
  return (bytes) => {
    read += bytes;
    progress(Math.min(read, total), total);
  };
}

export async function writeAt(file: FileHandle, part: ArrayBufferView, at: number): Promise<void> {
  const content = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  for (let done = 0; done < content.length; )
    done += (await file.write(content, done, content.length - done, at + done)).bytesWritten;
}
