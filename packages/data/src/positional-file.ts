/**
 * A file of which only what is asked for is read, through the page cache, which all ranks of a machine share. The reads block: the thread
 * that reads data has nothing else to do, and an asynchronous read takes two to four times as long. The file is not mapped into memory:
 * whoever touches a mapped page of a file that was cut short meanwhile is ended by SIGBUS, and a read fails with a sentence.
 */
import type { Hash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { DataError, reasonOf } from "./data-error.ts";

export class PositionalFile implements Disposable {
  readonly path: string;
  readonly size: number; // bytes
  #descriptor: number | undefined;

  /** Throws `DataError`. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#descriptor = openSync(path, "r");
      this.size = fstatSync(this.#descriptor).size;
    } catch (error) {
      this.close();
      throw unreadable(path, error);
    }
  }

  /** `count` bytes from `position` on. Throws `DataError`. */
  read(position: number, count: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(count);
    try {
      if (this.#descriptor === undefined) throw new Error("it is closed");
      for (let done = 0; done < count; ) {
        const read = readSync(this.#descriptor, bytes, done, Math.min(count - done, largestRead), position + done);
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

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

const largestRead = 1 << 30; // one system call reads less than 2 GiB

const unreadable = (path: string, error: unknown) =>
  new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or correct data.path.`);

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
  for (let i = 0; i < count; i++) {
    const at = count === 1 ? 0 : Math.floor((i * (size - pageBytes)) / (count - 1));
    hash.update(await read(at, Math.min(pageBytes, size - at)));
  }
}
