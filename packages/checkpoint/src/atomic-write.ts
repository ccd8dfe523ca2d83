/**
 * Writes files completely or not at all. A file is written under a temporary name in the same folder, flushed to the
 * disk and renamed; then the folder is flushed. Even after a power failure the file has its old or its new content.
 */
import { randomBytes } from "node:crypto";
import { fsyncSync, statSync, writeSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import { checkRegular } from "./regular-file.ts";

/**
 * Creates or replaces the file at `path`; `write` writes its content. On failure `path` is unchanged and the temporary
 * file is removed. Throws `CheckpointError`, or the error that `write` threw. A killed process leaves only a file whose
 * name starts with a dot and ends in .tmp.
 */
export async function atomicWrite(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const folder = dirname(path);
  // Common file systems limit names to 255 bytes.
  const temporary = join(
    folder,
    `.${basename(path).slice(0, 60)}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`,
  );
  let created = false;
  try {
    // The rename would put a file in the place of a device: after a write to /dev/null by root there is none.
    const before = statSync(path, { throwIfNoEntry: false });
    if (before) checkRegular(before);
    const file = await open(temporary, "wx");
    created = true;
    try {
      await write(file);
      if (isMainThread) await file.sync();
      else fsyncSync(file.fd);
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    created = false;
    await flushFolder(folder);
  } catch (error) {
    if (created) await rm(temporary, { force: true }).catch(() => {}); // the first error is reported
    const reason = reasonOf(error);
    if (reason === undefined || error instanceof CheckpointError) throw error;
    throw new CheckpointError(`Cannot write ${path}: ${reason}. The file is as it was before.`, { cause: error });
  }
}

/**
 * Writes all of `bytes` at the file's position. One system call may write only a part of them. A worker thread calls it
 * synchronously: Node's pool would write at the main thread's priority.
 */
export async function writeAll(file: FileHandle, bytes: ArrayBufferView, largest = 1 << 30): Promise<void> {
  const all = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < all.length; ) {
    const length = Math.min(all.length - at, largest);
    at += isMainThread ? (await file.write(all, at, length)).bytesWritten : writeSync(file.fd, all, at, length);
  }
}

/** Creates or replaces a file of UTF-8 text, completely or not at all. Throws `CheckpointError`. */
export async function atomicWriteText(path: string, text: string): Promise<void> {
  await atomicWrite(path, (file) => writeAll(file, new TextEncoder().encode(text)));
}

/** Gives a complete folder its name; a folder that has this name is removed first. Throws `CheckpointError`. */
export async function renameFolder(from: string, to: string): Promise<void> {
  try {
    await rm(to, { recursive: true, force: true });
    await rename(from, to);
    await flushFolder(dirname(to));
  } catch (error) {
    throw new CheckpointError(`Cannot rename ${from} to ${to}: ${reasonOf(error) ?? error}.`, { cause: error });
  }
}

/** Makes the rename durable. Systems that cannot flush a folder fail with one of these codes. */
async function flushFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, "r");
    await handle.sync();
  } catch (error) {
    if (!["EINVAL", "EPERM", "EISDIR", "ENOTSUP", "EACCES"].includes((error as NodeJS.ErrnoException).code!))
      throw error;
  }
}
