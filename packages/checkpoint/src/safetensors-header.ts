/**
 * Parses the header of a safetensors file, which is untrusted input. https://github.com/huggingface/safetensors
 *
 *   ┌────────────────┬───────────────────────────────┬──────────────────────────┐
 *   │ H: u64, 8 bytes │ JSON, H bytes, padded by spaces │ tensors, without a gap   │
 *   └────────────────┴───────────────────────────────┴──────────────────────────┘
 *   JSON: { "__metadata__": { text: text },
 *           name: { "dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end] }, … }
 *
 * Offsets count from the end of the header. The tensors cover the data exactly: there are no gaps and no overlaps.
 */
import { CheckpointError } from "./checkpoint-error.ts";
import { type DType, dtypeFromDisk, elementCount, elements, showShape } from "./dtypes.ts";
import { brief, isObject } from "./json.ts";

export const maxHeaderBytes = 100_000_000; // the limit of the format's own reader

/** A tensor of a safetensors file: its type, its shape, and where its bytes are. */
export interface TensorInfo {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly begin: number; // offset in the file, in bytes
  readonly bytes: number;
}

/** The header of a safetensors file: the metadata, and the tensors by name. */
export interface Header {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
}

const remedy = "copy it again, or use an earlier checkpoint";

export const cutShort = (path: string, size: number, needed: number | string) =>
  new CheckpointError(
    `${path} is incomplete: it has ${size} of ${needed} bytes. The run or copy that wrote it did not finish; ${remedy}.`,
  );
const damaged = (path: string, what: string) =>
  new CheckpointError(`${path} is not a valid safetensors file: ${what}; ${remedy}.`);

/** Reads H from the first 8 bytes of a file of `size` bytes. Throws `CheckpointError`. */
export function headerLength(start: Uint8Array, size: number, path: string): number {
  if (size < 8) throw cutShort(path, size, "at least 8");
  if (Buffer.from(start.subarray(0, 8)).toString("latin1") === "version ")
    throw new CheckpointError(`${path} is a pointer of Git LFS in place of the file; git lfs pull fetches it.`);
  const length = new DataView(start.buffer, start.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(maxHeaderBytes))
    throw damaged(path, `its header would have ${length} bytes, but the format allows at most ${maxHeaderBytes}`);
  if (size < 8 + Number(length)) throw cutShort(path, size, `at least ${8 + Number(length)}`);
  return Number(length);
}

/** Parses and checks the JSON of the header of a file of `size` bytes. Throws `CheckpointError`. */
export function parseHeader(json: Uint8Array, size: number, path: string): Header {
  const root = parseJson(json, path);
  const metadata: Record<string, string> = Object.create(null);
  const tensors = new Map<string, TensorInfo>();
  const dataStart = 8 + json.length;
  for (const [name, entry] of Object.entries(root)) {
    if (name === "__metadata__") {
      if (entry === null) continue; // the format's own reader accepts null too
      if (!isObject(entry)) throw damaged(path, "its __metadata__ is not an object");
      for (const [key, value] of Object.entries(entry)) {
        if (typeof value !== "string") throw damaged(path, `its metadata ${brief(key)} is not a string`);
        metadata[key] = value;
      }
    } else
      tensors.set(
        name,
        parseTensor(entry, dataStart, (what) => damaged(path, `tensor ${brief(name)} ${what}`)),
      );
  }

  let end = dataStart;
  for (const [name, { begin, bytes }] of [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.bytes - b.bytes)) {
    if (begin < end) throw damaged(path, `tensor ${brief(name)} overlaps the one before it`);
    if (begin > end) throw damaged(path, `${begin - end} bytes before tensor ${brief(name)} belong to no tensor`);
    end = begin + bytes;
  }
  if (size < end) throw cutShort(path, size, end);
  if (size > end) throw damaged(path, `${size - end} bytes at its end belong to no tensor`);
  return { metadata, tensors };
}

function parseTensor(entry: unknown, dataStart: number, wrong: (what: string) => Error): TensorInfo {
  if (!isObject(entry)) throw wrong("is not described by an object");
  const dtype = dtypeFromDisk(entry["dtype"]);
  if (dtype === undefined) throw wrong(`has the dtype ${brief(entry["dtype"])}, which the format does not have`);
  const shape = entry["shape"];
  const count = Array.isArray(shape) ? elementCount(shape) : Number.NaN;
  if (Number.isNaN(count)) throw wrong(`has the shape ${brief(shape)}, which is not a list of sizes`);
  const offsets = entry["data_offsets"];
  const [begin, end] = Array.isArray(offsets) && offsets.length === 2 ? offsets : [];
  if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(end) || begin < 0 || begin > end)
    throw wrong(`has the offsets ${brief(offsets)}, which are not a begin and an end`);
  const bytes = end - begin;
  if (count * elements[dtype].bytes !== bytes)
    throw wrong(
      `has ${bytes} bytes, but shape ${showShape(shape as number[])} in ${elements[dtype].onDisk} needs ${count * elements[dtype].bytes}`,
    );
  return { dtype, shape: shape as number[], begin: dataStart + begin, bytes };
}

function parseJson(bytes: Uint8Array, path: string): Record<string, unknown> {
  if (bytes[0] !== 0x7b) throw damaged(path, "its header does not start with {");
  let root: unknown;
  let twice: string | undefined;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    twice = repeatedKey(text); // before JSON.parse, because it refuses text that is nested too deep
    root = JSON.parse(text);
  } catch {
    throw damaged(path, "its header is not valid JSON, or is nested too deep");
  }
  if (twice !== undefined) throw damaged(path, `its header has the key ${brief(twice)} twice`);
  if (!isObject(root)) throw damaged(path, "its header is not an object");
  return root;
}

const maxDepth = 32; // a header needs 3

/**
 * The first key that an object of a JSON text has twice; JSON.parse would silently keep the last value. Throws if the
 * text is nested too deep, and may throw if it is no JSON.
 */
export function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = []; // for each open object or list, the keys so far (none for a list)
  let word = ""; // the last string
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case "{":
      case "[":
        if (open.push(new Set()) > maxDepth) throw new RangeError("nested too deep");
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case '"': {
        const start = i++;
        while (i < json.length && json[i] !== '"') i += json[i] === "\\" ? 2 : 1;
        word = json.slice(start, i + 1);
        break;
      }
      case ":": {
        const key = JSON.parse(word) as string; // "\u0061" and "a" are the same key
        const keys = open.at(-1);
        if (keys?.has(key)) return key;
        keys?.add(key);
      }
    }
  }
  return undefined;
}
