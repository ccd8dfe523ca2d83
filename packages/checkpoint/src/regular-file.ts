/**
 * Reads files that somebody else may have put there. Reading a pipe may wait for ever, and a device may give bytes
 * without end. So only regular files are opened, and of a small file only as much is read as it may have.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { cannot } from "./checkpoint-error.ts";

// A pipe that came after the first look is not waited for.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Opens a regular file, also by a link. Throws as `open` does, with a code and a reason in words for anything else. */
export async function openRegular(path: string): Promise<FileHandle> {
  checkRegular(statSync(path));
  const file = await open(path, flags);
  try {
    checkRegular(await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens a regular file synchronously, as `openRegular`. Returns a file descriptor. */
export function openRegularSync(path: string): number {
  checkRegular(statSync(path));
  const file = openSync(path, flags);
  try {
    checkRegular(fstatSync(file));
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** The text of a regular file that may have up to `mostBytes`. Throws as `openRegular`. */
export function readRegularText(path: string, mostBytes: number): string {
  const file = openRegularSync(path);
  try {
    // Reads one byte more, which shows that a file is larger.
    const bytes = Buffer.allocUnsafe(Math.min(fstatSync(file).size, mostBytes) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null);
    if (length > mostBytes)
      throw reason("ETOOBIG", `it has more than ${mostBytes} bytes, and no such file needs them; use another one`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}

/** As `readRegularText`, but throws a `CheckpointError`. */
export function readSmallText(path: string, mostBytes: number): string {
  try {
    return readRegularText(path, mostBytes);
  } catch (error) {
    throw cannot("read", path, error);
  }
}

/** Throws, with a code and a reason in words, for anything but a regular file. */
export function checkRegular(status: Stats): void {
  if (status.isFile()) return;
  if (status.isDirectory()) throw reason("EISDIR", "");
  const kind = status.isFIFO() ? "a pipe" : status.isSocket() ? "a socket" : "a device";
  throw reason("EFTYPE", `it is ${kind}, not a file; name a regular file`);
}

const reason = (code: string, words: string) => Object.assign(new Error(words), { code });
