/**
 * A file that is read in parts, through the page cache, which all ranks of a machine share. The reads block: the thread
 * that reads data has nothing else to do, and an asynchronous read takes two to four times as long. The file is not
 * mapped into memory: touching a mapped page of a file that was cut short meanwhile ends the process by SIGBUS, where a
 * read fails with an error.
 *
 * A thread has few files open at once, because data may have more files than a process may open. The files that were
 * not used for the longest time are closed, and opened again when needed.
 */
import type { Hash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import { DataError, unreadable } from "./data-error.ts";
import { evenlySpread } from "./evenly-spread.ts";
import { openRegularFile } from "./regular-file.ts";

const mostOpen = 64;
const open = new Map<PositionalFile, number>(); // descriptors; the one that was used last is the last

export class PositionalFile implements Disposable {
  readonly path: string;
  readonly size: number; // bytes
  readonly #identity: string; // of the file itself, whatever its path leads to later
  #isClosed = false;

  /** Opens the file. Throws `DataError`. */
  constructor(path: string) {
    this.path = path;
    const { descriptor, status } = openRegularFile(path);
    this.size = status.size;
    this.#identity = `${status.dev} ${status.ino}`;
    this.#keep(descriptor);
  }

  /** `count` bytes from `position` on. Throws `DataError`. */
  read(position: number, count: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(count);
    try {
      const descriptor = this.#opened();
      for (let done = 0; done < count; ) {
        const read = readSync(descriptor, bytes, done, Math.min(count - done, largestRead), position + done);
        if (read === 0)
          throw new DataError(
            `${this.path} became shorter while it was read; start again when no other program writes to it.`,
          );
        done += read;
      }
    } catch (error) {
      throw error instanceof DataError ? error : unreadable(this.path, error);
    }
    return bytes;
  }

  #opened(): number {
    if (this.#isClosed) throw new Error("it is closed");
    const descriptor = open.get(this);
    if (descriptor !== undefined) {
      open.delete(this);
      open.set(this, descriptor);
      return descriptor;
    }
    const again = openRegularFile(this.path);
    if (`${again.status.dev} ${again.status.ino}` !== this.#identity) {
      closeSync(again.descriptor);
      throw new DataError(
        `${this.path} was replaced by another file while it was read; start again when no other program writes to it.`,
      );
    }
    return this.#keep(again.descriptor);
  }

  #keep(descriptor: number): number {
    open.set(this, descriptor);
    if (open.size > mostOpen) closeFirst();
    return descriptor;
  }

  close(): void {
    this.#isClosed = true;
    const descriptor = open.get(this);
    open.delete(this);
    if (descriptor !== undefined) closeSync(descriptor);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function closeFirst(): void {
  const [[unused, descriptor]] = open as unknown as [[PositionalFile, number]];
  open.delete(unused);
  closeSync(descriptor);
}

const largestRead = 1 << 30; // one system call reads less than 2 GiB

const pageBytes = 4096;
const pages = 1024;

/** Adds a size and up to 1024 evenly spread pages to a fingerprint: all of what is no larger than they are. */
export async function hashPages(
  hash: Hash,
  size: number,
  read: (position: number, count: number) => Uint8Array | Promise<Uint8Array>,
): Promise<void> {
  hash.update(`${size} `);
  const count = Math.min(pages, Math.ceil(size / pageBytes));
  for (const at of evenlySpread(count, Math.max(1, size - pageBytes + 1)))
    hash.update(await read(at, Math.min(pageBytes, size - at)));
}
