/**
 * The header of a safetensors file, read as if an enemy had written it. https://github.com/huggingface/safetensors
 *
 *   ┌────────────────┬───────────────────────────────┬──────────────────────────┐
 *   │ H: u64, 8 bytes │ JSON, H bytes, padded by spaces │ tensors, without a gap   │
 *   └────────────────┴───────────────────────────────┴──────────────────────────┘
 *   JSON: { "__metadata__": { text: text }, name: { "dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end] }, … }
 *
 * Offsets count from the end of the header. Together the tensors cover the data exactly: no hole, no overlap, no rest.
 */
import { CheckpointError } from "./checkpoint-error.ts";
import { countOf, type DType, dtypeOnDisk, dtypes, elements, showShape } from "./dtypes.ts";

export const largestHeader = 100_000_000; // bytes; the limit of the format's own reader

export interface TensorPlace {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly begin: number; // byte in the file
  readonly bytes: number;
}
export interface Header {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: ReadonlyMap<string, TensorPlace>;
}

const again = "copy it again, or use an earlier checkpoint";

export const cutShort = (path: string, size: number, needed: number | string) =>
  new CheckpointError(
    `${path} is cut short: ${size} of ${needed} bytes. The run or copy that wrote it did not finish; ${again}.`,
  );
const damaged = (path: string, what: string) =>
  new CheckpointError(`${path} is no whole safetensors file: ${what}; ${again}.`);

/** H, from the first 8 bytes of a file of `size` bytes. Throws `CheckpointError`. */
export function headerLength(start: Uint8Array, size: number, path: string): number {
  if (size < 8) throw cutShort(path, size, "at least 8");
  const length = new DataView(start.buffer, start.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(largestHeader))
    throw damaged(
      path,
      `its header would have ${length} bytes, and ${largestHeader} are the most that the format allows`,
    );
  if (size < 8 + Number(length)) throw cutShort(path, size, `at least ${8 + Number(length)}`);
  return Number(length);
}

/** What the JSON says about a file of `size` bytes, checked. Throws `CheckpointError`. */
export function parseHeader(json: Uint8Array, size: number, path: string): Header {
  const root = parseJson(json, path);
  const metadata: Record<string, string> = Object.create(null);
  const tensors = new Map<string, TensorPlace>();
  const dataStart = 8 + json.length;
  for (const [name, entry] of Object.entries(root)) {
    if (name === "__metadata__") {
      if (entry === null) continue; // as the format's own reader has it
      if (!isObject(entry)) throw damaged(path, "its __metadata__ is no object");
      for (const [key, value] of Object.entries(entry)) {
        if (typeof value !== "string") throw damaged(path, `its metadata ${JSON.stringify(key)} is no text`);
        metadata[key] = value;
      }
    } else
      tensors.set(
        name,
        parsePlace(entry, dataStart, (what) => damaged(path, `tensor ${JSON.stringify(name)} ${what}`)),
      );
  }

  let end = dataStart;
  for (const [name, { begin, bytes }] of [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.bytes - b.bytes)) {
    if (begin < end) throw damaged(path, `tensor ${JSON.stringify(name)} overlaps the one before it`);
    if (begin > end)
      throw damaged(path, `${begin - end} bytes before tensor ${JSON.stringify(name)} belong to nothing`);
    end = begin + bytes;
  }
  if (size < end) throw cutShort(path, size, end);
  if (size > end) throw damaged(path, `${size - end} bytes at its end belong to nothing`);
  return { metadata, tensors };
}

function parsePlace(entry: unknown, dataStart: number, wrong: (what: string) => Error): TensorPlace {
  if (!isObject(entry)) throw wrong("has no description");
  const dtype = dtypeOnDisk(entry["dtype"]);
  if (dtype === undefined) {
    const known = dtypes.map((name) => elements[name].onDisk).join(", ");
    throw wrong(`has the dtype ${JSON.stringify(entry["dtype"])}, and only ${known} can be read`);
  }
  const shape = entry["shape"];
  const count = Array.isArray(shape) ? countOf(shape) : Number.NaN;
  if (Number.isNaN(count)) throw wrong(`has the shape ${brief(shape)}, which is no list of counts`);
  const offsets = entry["data_offsets"];
  const [begin, end] = Array.isArray(offsets) && offsets.length === 2 ? offsets : [];
  if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(end) || begin < 0 || begin > end)
    throw wrong(`has the offsets ${brief(offsets)}, which are no begin and end`);
  const bytes = end - begin;
  if (count * elements[dtype].bytes !== bytes)
    throw wrong(
      `has ${bytes} bytes, but shape ${showShape(shape as number[])} in ${elements[dtype].onDisk} has ${count * elements[dtype].bytes}`,
    );
  return { dtype, shape: shape as number[], begin: dataStart + begin, bytes };
}

function parseJson(bytes: Uint8Array, path: string): Record<string, unknown> {
  if (bytes[0] !== 0x7b) throw damaged(path, "its header does not start with {");
  let root: unknown;
  let twice: string | undefined;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    twice = repeatedKey(text); // before it is parsed: what is nested without end must not become objects
    root = JSON.parse(text);
  } catch {
    throw damaged(path, "its header is not valid JSON, or nested too deep");
  }
  if (twice !== undefined) throw damaged(path, `its header names ${JSON.stringify(twice)} twice`);
  if (!isObject(root)) throw damaged(path, "its header is no object");
  return root;
}

const deepest = 32; // a header needs 3

/**
 * A key that one object of a JSON text has twice (JSON.parse would silently keep the last). Throws where the text is
 * nested too deep, and perhaps where it is not JSON.
 */
export function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = []; // keys so far of the objects around this place; those of lists stay empty
  let word = ""; // the last string
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case "{":
      case "[":
        if (open.push(new Set()) > deepest) throw new RangeError("nested too deep");
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
        const key = JSON.parse(word) as string; // "\u0061" and "a" are one key
        const keys = open.at(-1);
        if (keys?.has(key)) return key;
        keys?.add(key);
      }
    }
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
