/** Reads and writes safetensors files. The bytes are those that the format's own library would write. */
import type { FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import { atomicWrite, writeAll } from "./atomic-write.ts";
import { CheckpointError, cannot, reasonOf } from "./checkpoint-error.ts";
import { type DType, dtypes, elementCount, elements, showShape, type TypedArray } from "./dtypes.ts";
import { Checksum, type FileRecord } from "./file-record.ts";
import { isObject } from "./json.ts";
import { openRegular } from "./regular-file.ts";
import {
  cutShort,
  type Header,
  headerLength,
  maxHeaderBytes,
  parseHeader,
  type TensorInfo,
} from "./safetensors-header.ts";
import { checkPart, checkTensor, pairsOf } from "./written-tensors.ts";

/** A tensor in memory. See `elements` for the arrays of each dtype; bool is 0 or 1 in a Uint8Array. */
export interface StoredTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

/** A tensor whose elements are read when they are written to the file, such as a Tensor of @terse/tensor. */
export interface TensorSource {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /**
   * The elements in row-major order. It is called for one tensor at a time, so that memory never has a second copy of a
   * large model.
   */
  toTypedArray(): ArrayBufferView | Promise<ArrayBufferView>;
}

/** A tensor whose elements are read in parts, each of whole elements, which follow each other in row-major order. */
export interface TensorInParts {
  readonly dtype: DType;
  readonly shape: readonly number[];
  parts(): Iterable<ArrayBufferView> | AsyncIterable<ArrayBufferView>;
}

/** A tensor to write: in memory, read at once, or read in parts. */
export type WritableTensor = StoredTensor | TensorSource | TensorInParts;

/** Tensors to write, each with its name. */
export type Tensors = Iterable<readonly [name: string, tensor: WritableTensor]>;

/**
 * Writes a safetensors file, completely or not at all. Tensors are in the order of the format's own library: larger
 * elements first, then by name. Resolves to the file's record. Throws `CheckpointError`.
 */
export async function writeSafetensors(
  path: string,
  tensors: Tensors,
  metadata: Readonly<Record<string, string>> = {},
): Promise<FileRecord> {
  const ordered = layOut(path, tensors);
  const header = headerOf(path, ordered, metadata);
  const checksum = new Checksum();
  await atomicWrite(path, async (file) => {
    checksum.add(header);
    await writeAll(file, header);
    for (const { name, tensor, bytes } of ordered) {
      let given = 0;
      for await (const part of partsOf(tensor)) {
        checkPart(tensor.dtype, part, wrongTensor(path, name));
        given += part.byteLength;
        if (given > bytes) continue; // they are too many, and counted for the error
        checksum.add(part);
        await writeAll(file, part);
      }
      if (given !== bytes)
        throw new CheckpointError(
          `Cannot write ${path}: tensor ${JSON.stringify(name)} has ${given} bytes, but shape ${showShape(tensor.shape)} in ${tensor.dtype} needs ${bytes}; give as many elements as the shape has. The file is as it was before.`,
        );
    }
  });
  const described = ordered.map(({ name, tensor: { dtype, shape } }) => [name, { dtype, shape }] as const);
  const { bytes, crc32 } = checksum;
  return { name: basename(path), bytes, crc32, tensors: Object.fromEntries(described) };
}

/** The elements of a tensor, whole or in parts. */
export async function* partsOf(tensor: WritableTensor): AsyncGenerator<ArrayBufferView> {
  if ("parts" in tensor) yield* tensor.parts();
  else yield "toTypedArray" in tensor ? await tensor.toTypedArray() : tensor.data;
}

interface OrderedTensor {
  readonly name: string;
  readonly tensor: WritableTensor;
  readonly bytes: number;
}

function layOut(path: string, tensors: Tensors): OrderedTensor[] {
  const byName = new Map<string, OrderedTensor>();
  for (const [name, tensor] of pairsOf(`Cannot write ${path}`, tensors)) {
    const wrong = wrongTensor(path, name);
    checkTensor(name, tensor, wrong);
    if (name === "__metadata__") throw wrong("has a name that the format reserves; choose another name");
    if (byName.has(name)) throw wrong("is given twice; give each tensor its own name");
    const count = elementCount(tensor.shape);
    if (Number.isNaN(count))
      throw wrong(`has the shape ${showShape(tensor.shape)}, but sizes are integers ≥ 0; correct the shape`);
    const bytes = count * elements[tensor.dtype].bytes;
    if (!Number.isInteger(bytes))
      throw wrong(
        `has the shape ${showShape(tensor.shape)}, which is ${bytes} bytes in ${tensor.dtype}; pad it to whole bytes`,
      );
    byName.set(name, { name, tensor, bytes });
  }
  const rank = ({ tensor }: OrderedTensor) => dtypes.indexOf(tensor.dtype);
  return [...byName.values()].sort(
    (a, b) => rank(a) - rank(b) || Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

/** Makes the error for a tensor, from words that follow its name. */
const wrongTensor = (path: string, name: unknown) => (what: string) =>
  new CheckpointError(`Cannot write ${path}: tensor ${JSON.stringify(name)} ${what}.`);

function headerOf(
  path: string,
  ordered: readonly OrderedTensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const entries: string[] = [];
  const add = (key: string, value: unknown) => entries.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  if (!isObject(metadata) || metadata instanceof Map)
    throw new CheckpointError(`Cannot write ${path}: its metadata is no plain object of strings; give { name: text }.`);
  const notText = Object.entries(metadata).find(([, value]) => typeof value !== "string");
  if (notText)
    throw new CheckpointError(
      `Cannot write ${path}: its metadata ${JSON.stringify(notText[0])} is not a string; convert it to one.`,
    );
  if (Object.keys(metadata).length > 0) add("__metadata__", metadata);
  let end = 0;
  for (const { name, tensor, bytes } of ordered) {
    const begin = end;
    end += bytes;
    add(name, { dtype: elements[tensor.dtype].onDisk, shape: tensor.shape, data_offsets: [begin, end] });
  }
  const json = new TextEncoder().encode(`{${entries.join(",")}}`);
  const padded = Math.ceil(json.length / 8) * 8; // the data starts at a multiple of 8
  if (padded > maxHeaderBytes)
    throw new CheckpointError(
      `Cannot write ${path}: its header would have ${padded} bytes, but the format allows at most ${maxHeaderBytes}; shorten names or metadata.`,
    );
  const header = new Uint8Array(8 + padded).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(padded), true);
  header.set(json, 8);
  return header;
}

/** Where the bytes of a tensor lie, for those who map the file into memory. */
export interface TensorPlace extends TensorInfo {
  /** A path of the file that is open, also where another one has its name now. */
  readonly path: string;
}

/** An open safetensors file. Its header has been read and checked; `read` reads a tensor. */
export class SafetensorsFile implements AsyncDisposable {
  readonly path: string;
  readonly metadata: Header["metadata"];
  readonly tensors: Header["tensors"];
  readonly #file: FileHandle;

  constructor(path: string, file: FileHandle, header: Header) {
    this.path = path;
    this.#file = file;
    this.metadata = header.metadata;
    this.tensors = header.tensors;
  }

  /** Reads one tensor. Throws `CheckpointError`. */
  async read(name: string): Promise<StoredTensor> {
    const { dtype, shape, begin, bytes } = this.#infoOf(name);
    const target = new Uint8Array(bytes);
    await readAll(this.#file, target, begin, this.path);
    const wrong = dtype === "bool" ? target.findIndex((byte) => byte > 1) : -1;
    if (wrong >= 0)
      throw new CheckpointError(
        `${this.path} is damaged: element ${wrong} of the bool tensor ${JSON.stringify(name)} is ${target[wrong]}; copy it again, or use an earlier checkpoint.`,
      );
    return { dtype, shape, data: elements[dtype].array(target.buffer) };
  }

  /** Where the bytes of a tensor lie in the file. Throws `CheckpointError` where there is no such tensor. */
  placeOf(name: string): TensorPlace {
    const path = process.platform === "linux" ? `/proc/self/fd/${this.#file.fd}` : this.path;
    return { ...this.#infoOf(name), path };
  }

  #infoOf(name: string): TensorInfo {
    const info = this.tensors.get(name);
    if (!info) throw noTensor(this.path, this.tensors, name);
    return info;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The error for a tensor that a file or a folder lacks; it lists up to ten that are there. */
export function noTensor(path: string, tensors: ReadonlyMap<string, unknown>, name: string): CheckpointError {
  const names = [...tensors.keys()];
  const more = names.length > 10 ? ` and ${names.length - 10} more` : "";
  const there = names.slice(0, 10).join(", ") || "none";
  return new CheckpointError(`${path} has no tensor ${JSON.stringify(name)}; it has ${there}${more}.`);
}

/** Opens a file, and reads and checks its header but no tensor. Throws `CheckpointError`. */
export async function openSafetensors(path: string): Promise<SafetensorsFile> {
  let file: FileHandle | undefined;
  try {
    file = await openRegular(path);
    const status = await file.stat();
    const start = new Uint8Array(8);
    if (status.size >= 8) await readAll(file, start, 0, path);
    const json = new Uint8Array(headerLength(start, status.size, path));
    await readAll(file, json, 8, path);
    return new SafetensorsFile(path, file, parseHeader(json, status.size, path));
  } catch (error) {
    await file?.close();
    if (reasonOf(error) === undefined || error instanceof CheckpointError) throw error;
    throw cannot("read", path, error);
  }
}

/** Reads all tensors of a file, or only those in `names`. Throws `CheckpointError`. */
export async function readSafetensors(path: string, names?: Iterable<string>): Promise<Map<string, StoredTensor>> {
  await using file = await openSafetensors(path);
  const tensors = new Map<string, StoredTensor>();
  for (const name of names ?? file.tensors.keys()) tensors.set(name, await file.read(name));
  return tensors;
}

async function readAll(file: FileHandle, target: Uint8Array, begin: number, path: string): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const length = Math.min(target.length - at, 1 << 30); // one system call reads less than 2 GiB
    const { bytesRead } = await file.read(target, at, length, begin + at);
    if (bytesRead === 0) throw cutShort(path, begin + at, `at least ${begin + target.length}`);
    at += bytesRead;
  }
}
