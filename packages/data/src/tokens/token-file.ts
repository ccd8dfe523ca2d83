/**
 * Files of token ids: nanoGPT's train.bin, which is only u16, and the shards of llm.c and FineWeb, which have a header.
 *
 *   256 × i32: magic 20240520, version 1, number of tokens, zeros    then the tokens, u16
 *   256 × i32: magic 20240801, version 7, number of tokens, zeros    then the tokens, u32
 *
 * karpathy/nanoGPT data/openwebtext/prepare.py; karpathy/llm.c dev/data/data_common.py. All little-endian.
 */
import { createHash } from "node:crypto";
import { namedPacking } from "../content/packing.ts";
import { DataError } from "../data-error.ts";
import { hashPages, PositionalFile } from "../positional-file.ts";
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
  readonly file: PositionalFile;
  read(start: number, count: number): Uint16Array | Uint32Array;
  close(): Promise<void>;
}

/** Opens a file that is read in parts. Throws `DataError` where it is no file of tokens, or is cut short. */
export function openTokenFile(path: string): TokenFile {
  const file = new PositionalFile(path);
  try {
    return tokensOf(file);
  } catch (error) {
    file.close();
    throw error;
  }
}

function tokensOf(file: PositionalFile): TokenFile {
  const { path, size } = file;
  const packing = namedPacking(path);
  if (packing)
    throw new DataError(
      `${path} is packed by ${packing.name}, and tokens are read where they are; unpack it with ${packing.program}.`,
    );
  if (size >= 6 && Buffer.from(file.read(0, 6)).toString("latin1") === "\x93NUMPY")
    throw new DataError(
      `${path} is a file of NumPy, whose header is no tokens; write its numbers alone: numpy.load("${path}").astype("uint16").tofile("….bin").`,
    );
  const start = size >= headerBytes ? file.read(0, headerBytes) : new Uint8Array(headerBytes);
  const [magic, version, count] = new Int32Array(start.buffer) as unknown as [number, number, number];
  const header = headers.find((known) => known.magic === magic);
  if (header && version !== header.version)
    throw new DataError(
      `${path} has version ${version} of the header ${magic}, and only ${header.version} is known; write it again as that version.`,
    );
  const [from, bytes] = header ? [headerBytes, header.bytes] : [0, 2];
  const wrong = header ? undefined : noTokensBecause(start);
  if (wrong !== undefined) throw new DataError(`${path} ${wrong}.`);
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
    file,
    read: (first, count) => new Tokens(file.read(from + first * bytes, count * bytes).buffer),
    close: async () => file.close(),
  };
}

/** Why the beginning of a file without a header is not that of 16-bit tokens. */
function noTokensBecause(start: Uint8Array): string | undefined {
  const words = new Uint16Array(start.buffer);
  const largest = (parity: number) => Math.max(...words.filter((_, i) => i % 2 === parity));
  const [lower, upper] = [largest(0), largest(1)]; // halves, if a token has 32 bits
  if (upper === 0 && lower > 0)
    return 'has a zero in every second place, as tokens of 32 or 64 bits have, and is read as 16 bits: write them by NumPy\'s astype("uint16"), or with ./terse data prepare';
  // No vocabulary has 8 · 65,536 tokens, and of 256 tokens of a large one some are beyond 1,024.
  if (upper < 8 && lower >= 1024)
    return "has a number below 8 in every second place, as tokens of 32 or 64 bits beyond 65,535 have, and is read as 16 bits: write them as 32 bits behind the header 20240801 (docs/data.md), or with ./terse data prepare";
  return start.every((byte) => (byte >= 32 && byte < 127) || (byte >= 9 && byte <= 13))
    ? "is text, and no tokens: ./terse data prepare writes them, or fetch it again"
    : undefined;
}

/** One fingerprint of several files. */
export async function fingerprintOf(files: readonly TokenFile[], more: string): Promise<string> {
  const hash = createHash("sha256").update(more);
  for (const { file } of files) await hashPages(hash, file.size, (at, count) => file.read(at, count));
  return hash.digest("hex");
}
