/**
 * Files that appear whole or not at all: written under a temporary name in the same folder, flushed to the disk, renamed,
 * and the folder flushed too, so that also after a power failure the name holds the old content or the new one.
 */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";

/**
 * Puts what `write` writes at `path`, replacing what was there. When anything fails, `path` is as it was, the temporary
 * file is gone, and the error is a `CheckpointError` (or what `write` itself threw). A process that is killed leaves only
 * a file whose name starts with a dot and ends in .tmp.
 */
export async function atomicWrite(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const folder = dirname(path);
  // 255 bytes is the longest name that common file systems take.
  const temporary = join(
    folder,
    `.${basename(path).slice(0, 60)}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`,
  );
  let created = false;
  try {
    const file = await open(temporary, "wx");
    created = true;
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    created = false;
    await flushFolder(folder);
  } catch (error) {
    if (created) await rm(temporary, { force: true }).catch(() => {}); // the first error is the one to report
    const reason = reasonOf(error);
    if (reason === undefined || error instanceof CheckpointError) throw error;
    throw new CheckpointError(`Cannot write ${path}: ${reason}. The file is as it was before.`, { cause: error });
  }
}

/** All of `bytes` at the file's position; one write call of the system may take only a part. */
export async function writeAll(file: FileHandle, bytes: ArrayBufferView, largest = 1 << 30): Promise<void> {
  const all = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < all.length; )
    at += (await file.write(all, at, Math.min(all.length - at, largest))).bytesWritten;
}

export async function atomicWriteText(path: string, text: string): Promise<void> {
  await atomicWrite(path, (file) => writeAll(file, new TextEncoder().encode(text)));
}

/** Makes the rename itself durable. Systems that cannot flush a folder say so with these codes. */
async function flushFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, "r");
    await handle.sync();
  } catch (error) {
    if (!["EINVAL", "EPERM", "EISDIR", "ENOTSUP", "EACCES"].includes((error as NodeJS.ErrnoException).code!))
      throw error;
  }
}
