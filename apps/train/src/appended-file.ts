/**
 * A file that grows while a run goes on. What its disk does not take now (it is full, read-only or away) stays in
 * memory and is written later, in whole pieces, so a passing failure loses nothing. The failure is reported once, and
 * so is its end.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { reasonOf } from "@terse/checkpoint";
import { amountText } from "./format.ts";

const mostBytes = 1 << 24; // that are kept in memory; then the oldest pieces are lost

export interface AppendedFileOptions {
  readonly path: string;
  /** What a piece is, for sentences: "line". */
  readonly piece: string;
  readonly say: (text: string) => void;
  readonly mostBytes?: number;
}

export class AppendedFile implements Disposable {
  readonly #options: AppendedFileOptions;
  #waiting: Uint8Array[] = [];
  #bytes = 0; // of those
  #lost = 0; // pieces
  /** The file, and its length without a piece that was written in part. */
  #whole: { readonly inode: number; readonly length: number } | undefined;
  #problem: string | undefined; // as it was said
  #hasWritten = false;

  constructor(options: AppendedFileOptions) {
    this.#options = options;
  }

  /** Writes a piece, after those that wait. Never throws. */
  append(piece: string | Uint8Array): void {
    const bytes = Buffer.from(piece as string);
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    this.#write();
    for (; this.#bytes > (this.#options.mostBytes ?? mostBytes) && this.#waiting.length > 0; this.#lost++)
      this.#bytes -= this.#waiting.shift()!.length;
  }

  #write(): void {
    const { path, piece, say } = this.#options;
    try {
      this.#writeAll();
    } catch (error) {
      if (this.#problem === undefined)
        say(
          `${path} cannot be written: ${reasonOf(error) ?? error}; the run goes on, keeps its ${piece}s in memory and tries again`,
        );
      this.#problem = reasonOf(error) ?? String(error);
      return;
    }
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    say(`${path} is written again${this.#lost > 0 ? `; ${this.#lostText(this.#lost)}` : " and lacks nothing"}`);
    this.#lost = 0;
  }

  #writeAll(): void {
    const file = openSync(this.#options.path, "a+");
    try {
      const { ino: inode, size } = fstatSync(file);
      const length = this.#whole?.inode === inode ? Math.min(size, this.#whole.length) : size;
      if (length < size) ftruncateSync(file, length);
      this.#whole = { inode, length };
      const all = Buffer.concat([Buffer.from(this.#endsWithinLine(file, length) ? "\n" : ""), ...this.#waiting]);
      for (let at = 0; at < all.length; ) at += writeSync(file, all, at);
      this.#whole = undefined;
      this.#hasWritten = true;
      this.#waiting = [];
      this.#bytes = 0;
    } catch (error) {
      try {
        if (this.#whole) ftruncateSync(file, this.#whole.length);
        this.#whole = undefined;
      } catch {
        // the next try removes what was written in part
      }
      throw error;
    } finally {
      closeSync(file);
    }
  }

  /** A process that was killed may have left half a line, to which the first line must not be added. */
  #endsWithinLine(file: number, length: number): boolean {
    if (this.#hasWritten || this.#options.piece !== "line" || length === 0) return false;
    const last = Buffer.alloc(1);
    readSync(file, last, 0, 1, length - 1);
    return last.toString() !== "\n";
  }

  #lostText(pieces: number): string {
    return `${amountText(pieces, this.#options.piece)} could not be kept`;
  }

  /** Tries once more, and says what is lost. */
  [Symbol.dispose](): void {
    if (this.#problem === undefined) return;
    this.#write();
    if (this.#problem !== undefined)
      this.#options.say(
        `${this.#options.path}: ${this.#lostText(this.#waiting.length + this.#lost)}: ${this.#problem}`,
      );
  }
}
