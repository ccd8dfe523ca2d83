/** What a file held when it was written. */
import { crc32 } from "node:zlib";
import type { DType } from "./dtypes.ts";

/** What a file of a save had when it was written, by which a damaged or exchanged file is found. */
export interface FileRecord {
  /** The file's name within its folder, or within a folder in that. */
  readonly name: string;
  readonly bytes: number;
  /** CRC-32 of its bytes, as zlib computes it: eight hexadecimal digits. */
  readonly crc32: string;
  /** The tensors of a safetensors file, by name. */
  readonly tensors?: Readonly<Record<string, { readonly dtype: DType; readonly shape: readonly number[] }>>;
}

const largest = 1 << 30; // bytes that zlib takes at once

/** Adds up the bytes of a file while they are written or read. */
export class Checksum {
  bytes = 0;
  #crc = 0;

  add(part: ArrayBufferView): void {
    const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    for (let at = 0; at < bytes.length; at += largest) this.#crc = crc32(bytes.subarray(at, at + largest), this.#crc);
    this.bytes += bytes.length;
  }

  get crc32(): string {
    return this.#crc.toString(16).padStart(8, "0");
  }
}
