/**
 * Files of token ids: nanoGPT's train.bin, which is nothing but u16, and the shards of llm.c and of FineWeb, which have a header.
 *
 *   256 × i32: magic 20240520, version 1, number of tokens, zeros    then the tokens, u16
 *   256 × i32: magic 20240801, version 7, number of tokens, zeros    then the tokens, u32
 *
 * karpathy/nanoGPT data/openwebtext/prepare.py; karpathy/llm.c dev/data/data_common.py. All little-endian.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { DataError, reasonOf } from "../data-error.ts";
import type { TokenSource } from "./token-source.ts";

export const headerBytes = 1024;

export const headers = [
  { magic: 20240520, version: 1, bytes: 2 },
  { magic: 20240801, version: 7, bytes: 4 },
] as const;

/** The header of `count` tokens of this many bytes each. */
export function headerOf(count: number, bytes: 2 | 4): Uint8Array {
  const { magic, version } = headers.find((header) => header.bytes === bytes)!;
  const words = new Int32Array(headerBytes / 4);
  words.set([magic, version, count]);
  return new Uint8Array(words.buffer);
}

export interface TokenFile extends TokenSource {
  /** Adds the file to a fingerprint: its size and up to 1024 evenly spread pages, all of a file that is no longer. */
  hashInto(hash: Hash): Promise<void>;
  close(): Promise<void>;
}

const pageBytes = 4096;
const pages = 1024;

/** Opens a file, of which only what is asked for is read. Throws `DataError` where it is no file of tokens, or is cut short. */
export async function openTokenFile(path: string): Promise<TokenFile> {
  const file = await open(path, "r").catch((error) => {
    throw new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or correct data.path.`);
  });
  try {
    return await tokensOf(file, path);
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function tokensOf(file: FileHandle, path: string): Promise<TokenFile> {
  const { size } = await file.stat();
  const start = new Int32Array(headerBytes / 4);
  if (size >= headerBytes) await file.read(new Uint8Array(start.buffer), 0, headerBytes, 0);
  const [magic, version, count] = start as unknown as [number, number, number];
  const header = headers.find((known) => known.magic === magic);
  if (header && version !== header.version)
    throw new DataError(
      `${path} has version ${version} of the header ${magic}, and only ${header.version} is known; write it again as that version.`,
    );
  const [from, bytes] = header ? [headerBytes, header.bytes] : [0, 2];
  const length = header ? count : size / bytes;
  const wanted = from + length * bytes;
  if (header && (length < 0 || size !== wanted))
    throw new DataError(
      `${path} has ${size} bytes, and its header says ${length} tokens, ${wanted} bytes: it is cut short or damaged; fetch or write it again.`,
    );
  if (!Number.isInteger(length))
    throw new DataError(
      `${path} has ${size} bytes, which is no whole number of 16-bit tokens; fetch or write it again.`,
    );
  const Tokens = bytes === 2 ? Uint16Array : Uint32Array;
  return {
    name: path,
    length,
    async read(first, wantedTokens) {
      const tokens = new Tokens(wantedTokens);
      await readFully(file, new Uint8Array(tokens.buffer), from + first * bytes, path);
      return tokens;
    },
    async hashInto(hash) {
      hash.update(`${size} `);
      const each = Math.min(pages, Math.ceil(size / pageBytes));
      for (let i = 0; i < each; i++) {
        const at = each === 1 ? 0 : Math.floor((i * (size - Math.min(size, pageBytes))) / (each - 1));
        const page = new Uint8Array(Math.min(pageBytes, size - at));
        await readFully(file, page, at, path);
        hash.update(page);
      }
    },
    close: () => file.close(),
  };
}

async function readFully(file: FileHandle, into: Uint8Array, position: number, path: string): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, position + done);
    if (bytesRead === 0)
      throw new DataError(`${path} became shorter while it was read; start again when no other program writes to it.`);
    done += bytesRead;
  }
}

/** One fingerprint of several files. */
export async function fingerprintOf(files: readonly TokenFile[], more: string): Promise<string> {
  const hash = createHash("sha256").update(more);
  for (const file of files) await file.hashInto(hash);
  return hash.digest("hex");
}
