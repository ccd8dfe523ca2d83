/**
 * The weights in a model's folder, in the layout of Hugging Face: one file, or shards that an index names.
 *
 *   model.safetensors
 *   model.safetensors.index.json    { "metadata": { "total_size": bytes },
 *                                     "weight_map": { name: "model-00001-of-00002.safetensors", … } }
 *   model-00001-of-00002.safetensors, …
 *
 * Where both are there, the one file counts, as in transformers.
 */
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { atomicWrite, writeAll } from "./atomic-write.ts";
import { CheckpointError } from "./checkpoint-error.ts";
import { elementCount, elements } from "./dtypes.ts";
import { Checksum, type FileRecord } from "./file-record.ts";
import { brief, isObject, parsedJson } from "./json.ts";
import { mayExist } from "./may-exist.ts";
import { readSmallText } from "./regular-file.ts";
import {
  noTensor,
  openSafetensors,
  type SafetensorsFile,
  type StoredTensor,
  type TensorPlace,
  type Tensors,
  type WritableTensor,
  writeSafetensors,
} from "./safetensors.ts";
import type { TensorInfo } from "./safetensors-header.ts";

/** The name of the file with an adapter's weights, as in PEFT's layout. */
export const adapterFile = "adapter_model.safetensors";
/** The name of the file with all weights, as in Hugging Face's layout. */
export const weightsFile = "model.safetensors";
/** The name of the index of weights in several files (shards). */
export const indexFile = "model.safetensors.index.json";
const mostIndexBytes = 100_000_000; // as of a header, which names every tensor too
const mostShards = 4096; // all of them are open at once

/** The open weights of a folder: the headers have been read and checked; `read` reads a tensor. */
export interface Weights extends AsyncDisposable {
  /** The path of the file or of the index, for messages. */
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  read(name: string): Promise<StoredTensor>;
  placeOf(name: string): TensorPlace;
  close(): Promise<void>;
}

/** Whether a folder has weights. */
export const hasWeights = (folder: string): boolean =>
  mayExist(join(folder, weightsFile)) || mayExist(join(folder, indexFile));

/**
 * Opens the weights of a folder, or of a file of an adapter. Throws `CheckpointError`, also where the index and the
 * shards contradict each other.
 */
export async function openWeights(folder: string): Promise<Weights> {
  if (basename(folder) === adapterFile) return openSafetensors(folder);
  const single = join(folder, weightsFile);
  if (mayExist(single) || !mayExist(join(folder, indexFile))) return openSafetensors(single);
  const index = await readIndex(folder);
  const files = new Set(index.files.values());
  if (files.size > mostShards)
    throw wrongIndex(index.path, `names ${files.size} shards, and no more than ${mostShards} are opened`);
  const absent = [...files].filter((file) => !mayExist(join(folder, file)));
  if (absent.length > 0)
    throw wrongIndex(
      index.path,
      `names ${files.size} shards, of which ${absent.length === 1 ? "1 is" : `${absent.length} are`} not there: ${absent[0]}${absent.length > 1 ? " …" : ""}`,
    );
  const shards = new Map<string, SafetensorsFile>();
  const close = () => Promise.all([...shards.values()].map((shard) => shard.close())).then(() => {});
  try {
    for (const file of files) shards.set(file, await openSafetensors(join(folder, file)));
    return joined(index, shards, close);
  } catch (error) {
    await close();
    throw error;
  }
}

/** The names of the files that `openWeights` reads in a folder. Throws `CheckpointError`. */
export async function filesOfWeights(folder: string): Promise<string[]> {
  const isSingle = mayExist(join(folder, weightsFile)) || !mayExist(join(folder, indexFile));
  if (isSingle) return [weightsFile];
  return [...new Set((await readIndex(folder)).files.values()), indexFile];
}

export interface Index {
  readonly path: string;
  readonly files: ReadonlyMap<string, string>; // of each tensor
}

function joined(
  { path, files }: Index,
  shards: ReadonlyMap<string, SafetensorsFile>,
  close: () => Promise<void>,
): Weights {
  const tensors = new Map<string, TensorInfo>();
  for (const [name, file] of files) {
    const info = shards.get(file)!.tensors.get(name);
    if (!info) throw wrongIndex(path, `says that ${file} has the tensor ${brief(name)}, and it has not`);
    tensors.set(name, info);
  }
  for (const [file, shard] of shards)
    for (const name of shard.tensors.keys())
      if (files.get(name) !== file) throw wrongIndex(path, `does not say that ${file} has the tensor ${brief(name)}`);
  const shardOf = (name: string) => {
    const file = files.get(name);
    if (file === undefined) throw noTensor(path, tensors, name);
    return shards.get(file)!;
  };
  return {
    path,
    tensors,
    read: async (name) => shardOf(name).read(name),
    placeOf: (name) => shardOf(name).placeOf(name),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function readIndex(folder: string): Promise<Index> {
  const path = join(folder, indexFile);
  return parseIndex(readSmallText(path, mostIndexBytes), path);
}

/** The index in a text that `path` names in errors. Throws `CheckpointError`. */
export function parseIndex(text: string, path: string): Index {
  const map = (parsedJson(text) as { weight_map?: unknown } | null | undefined)?.weight_map;
  if (!isObject(map)) throw wrongIndex(path, "is not a JSON object with a weight_map");
  const files = new Map(Object.entries(map as Readonly<Record<string, string>>));
  // A name with a slash could lead to any file of the machine.
  const outside = [...files].find(([, file]) => typeof file !== "string" || !/^[\w-][\w.-]*\.safetensors$/.test(file));
  if (outside)
    throw wrongIndex(path, `says that ${brief(outside[0])} is in ${brief(outside[1])}, which is no shard's name`);
  return { path, files };
}

const wrongIndex = (path: string, what: string) =>
  new CheckpointError(`${path} ${what}; copy the folder again, or use other weights.`);

/**
 * Writes the weights of a model into a folder: one file, or shards of at most `shardBytes` each (a larger tensor has a
 * shard of its own) and then the index. The new weights replace older ones at once: no shard has the name of an
 * existing one, and the file that leads to the older weights is replaced or removed when the new ones are complete.
 * Resolves to a record of each file.
 */
export async function writeWeights(folder: string, tensors: Tensors, shardBytes: number): Promise<FileRecord[]> {
  // "pt" tells other libraries that names and layouts are PyTorch's. Some of them refuse a file without it.
  const write = (file: string, part: Tensors) => writeSafetensors(join(folder, file), part, { format: "pt" });
  if (typeof shardBytes !== "number" || !(shardBytes > 0))
    throw new CheckpointError(
      `Cannot write ${folder}: shardBytes is ${String(shardBytes)}, and must be a number of bytes, more than 0.`,
    );
  const all = [...tensors];
  const shards = inShards(all, shardBytes);
  const older = (await readdir(folder)).filter((name) => shardName.test(name));
  const records: FileRecord[] = [];
  if (shards.length < 2) {
    records.push(await write(weightsFile, all));
    await rm(join(folder, indexFile), { force: true });
  } else {
    const map: Record<string, string> = {};
    let total = 0;
    for (const [i, file] of namesOf(shards.length, older).entries()) {
      records.push(await write(file, shards[i]!));
      for (const [name, tensor] of shards[i]!) {
        map[name] = file;
        total += bytesOf(tensor);
      }
    }
    records.push(await writeJson(folder, indexFile, { metadata: { total_size: total }, weight_map: map }));
    await rm(join(folder, weightsFile), { force: true });
  }
  for (const name of older) await rm(join(folder, name), { force: true });
  return records;
}

const shardName = /^model(-\d+)?-\d{5}-of-\d{5}\.safetensors$/;

/** The usual names; where one of them is taken, all have a number: model-2-00001-of-00003.safetensors. */
function namesOf(count: number, taken: readonly string[]): string[] {
  const number = (i: number) => String(i).padStart(5, "0");
  for (let save = 1; ; save++) {
    const start = save > 1 ? `model-${save}` : "model";
    const names = Array.from({ length: count }, (_, i) => `${start}-${number(i + 1)}-of-${number(count)}.safetensors`);
    if (!names.some((name) => taken.includes(name))) return names;
  }
}

type Named = readonly [name: string, tensor: WritableTensor];

function inShards(tensors: readonly Named[], shardBytes: number): Named[][] {
  const shards: Named[][] = [];
  let left = 0;
  for (const named of tensors) {
    const bytes = bytesOf(named[1]);
    if (shards.length === 0 || bytes > left) {
      shards.push([]);
      left = shardBytes;
    }
    shards.at(-1)!.push(named);
    left -= bytes;
  }
  return shards;
}

const bytesOf = ({ shape, dtype }: Named[1]) => elementCount(shape) * elements[dtype].bytes;

/** Writes a JSON file, completely or not at all. Throws `CheckpointError`. */
export async function writeJson(folder: string, name: string, content: object): Promise<FileRecord> {
  if (!isObject(content))
    throw new CheckpointError(`Cannot write ${join(folder, name)}: what it would say is no object; give one.`);
  const text = new TextEncoder().encode(`${JSON.stringify(content, null, 2)}\n`);
  await atomicWrite(join(folder, name), (file) => writeAll(file, text));
  const checksum = new Checksum();
  checksum.add(text);
  const { bytes, crc32 } = checksum;
  return { name, bytes, crc32 };
}
