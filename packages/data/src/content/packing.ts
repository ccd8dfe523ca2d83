/** How files are packed. Their first bytes tell it, not their names. */
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { zstdContent } from "./zstd.ts";

/** What is unpacked; `bytesWritten`: how much of the source it took, where that may be less than all. */
export type Unpacked = AsyncIterable<Uint8Array> & { readonly bytesWritten?: number };

export interface Packing {
  readonly name: string;
  readonly endings: readonly string[];
  readonly isIn: (head: Uint8Array) => boolean;
  /** Absent for packings that are not read here. Throws what zlib throws. */
  readonly unpack?: (source: AsyncIterable<Uint8Array>) => Unpacked;
  /** The program that unpacks it. */
  readonly program: string;
}

const begins =
  (...bytes: readonly number[]) =>
  (head: Uint8Array) =>
    bytes.every((byte, i) => head[i] === byte);

const packings: readonly Packing[] = [
  {
    name: "gzip",
    endings: ["gz"],
    isIn: begins(0x1f, 0x8b),
    unpack: (source) => pipeline(Readable.from(source), createGunzip({ chunkSize: 1 << 18 }), () => {}),
    program: "gunzip -k",
  },
  {
    name: "zstd",
    endings: ["zst", "zstd"],
    // A frame, or a skippable one, with which pzstd begins.
    isIn: (head) =>
      begins(0x28, 0xb5, 0x2f, 0xfd)(head) || (head[0]! >> 4 === 5 && begins(0x2a, 0x4d, 0x18)(head.subarray(1))),
    unpack: zstdContent,
    program: "unzstd",
  },
  {
    name: "bzip2",
    endings: ["bz2"],
    isIn: (head) => begins(0x42, 0x5a, 0x68)(head) && begins(0x31, 0x41, 0x59, 0x26)(head.subarray(4)),
    program: "bunzip2 -k",
  },
  { name: "compress", endings: ["z"], isIn: begins(0x1f, 0x9d), program: "uncompress -k" },
  { name: "xz", endings: ["xz", "lzma"], isIn: begins(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0), program: "unxz -k" },
  { name: "LZ4", endings: ["lz4"], isIn: begins(0x04, 0x22, 0x4d, 0x18), program: "unlz4" },
  { name: "brotli", endings: ["br"], isIn: () => false, program: "brotli -d" },
  { name: "zip", endings: ["zip"], isIn: begins(0x50, 0x4b, 0x03, 0x04), program: "unzip" },
  { name: "7z", endings: ["7z"], isIn: begins(0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c), program: "7z x" },
  {
    name: "tar",
    endings: ["tar"],
    isIn: (head) => begins(...Buffer.from("ustar"))(head.subarray(257)),
    program: "tar -xf",
  },
];

/** How a file is packed; undefined for one that is not. */
export const packingOf = (head: Uint8Array): Packing | undefined => packings.find(({ isIn }) => isIn(head));

/** The packing that a name ends in. */
export const namedPacking = (path: string) =>
  packings.find(({ endings }) => endings.some((ending) => path.toLowerCase().endsWith(`.${ending}`)));

/** A name without the ending of a packing that is read here: docs.jsonl.gz → docs.jsonl. */
export function unpackedName(path: string): string {
  const packing = namedPacking(path);
  return packing?.unpack ? path.slice(0, path.lastIndexOf(".")) : path;
}

/** Why a file with this beginning cannot be unpacked, and what to do; undefined where it can, or need not. */
export function packingProblem(path: string, head: Uint8Array): string | undefined {
  const [found, named] = [packingOf(head), namedPacking(path)];
  const packing = found ?? named;
  if (packing !== undefined && packing.unpack === undefined)
    return `packed by ${packing.name}, which is not read, as gzip and zstd are: unpack it with ${packing.program}`;
  if (named !== undefined && found !== named)
    return `no ${named.name} file, as its name says: fetch it again, or rename it`;
  return undefined;
}
