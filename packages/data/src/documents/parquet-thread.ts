/** The thread that reads a parquet file: it answers each message with what the next group of rows has. */
import { parentPort, workerData } from "node:worker_threads";
import zlib from "node:zlib";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type RowGroup,
  type SchemaTree,
} from "hyparquet";
import { DataError } from "../data-error.ts";
import { PositionalFile } from "../positional-file.ts";
import { largestInMemory } from "../tokens/largest-in-memory.ts";
import type { Answer, Group, ParquetThreadData } from "./parquet.ts";
import { exactJson } from "./read-json.ts";
import { someNames } from "./some-names.ts";
import { lettersOf, textOfRow } from "./text-of-row.ts";

/** Snappy is hyparquet's own. A page has the size that its header says, and never fills more memory. */
const compressors: Compressors = {
  GZIP: (bytes, size) => zlib.gunzipSync(bytes, { maxOutputLength: size + 1 }),
  BROTLI: (bytes, size) => zlib.brotliDecompressSync(bytes, { maxOutputLength: size + 1 }),
  ZSTD: (bytes, size) => zlib.zstdDecompressSync(bytes, { maxOutputLength: size + 1 }),
};
const codecs = ["UNCOMPRESSED", "SNAPPY", ...Object.keys(compressors)];

const lettersAtOnce = 16 << 20;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The first group is empty: only the metadata has been read. Throws `DataError`. */
async function* groupsOf({ path, read }: ParquetThreadData): AsyncGenerator<Group> {
  using opened = new PositionalFile(path);
  const { size } = opened;
  const file: AsyncBuffer = {
    byteLength: size,
    slice: (begin, end = size) => opened.read(begin, Math.max(0, Math.min(end, size) - begin)).buffer,
  };
  if (size >= 4 && Buffer.from(opened.read(size - 4, 4)).toString("latin1") === "PARE") throw encrypted(path);
  let metadata: FileMetaData;
  try {
    metadata = await parquetMetadataAsync(file);
  } catch (error) {
    throw new DataError(`${path} is no parquet file, or is cut short: ${(error as Error).message}; fetch it again.`);
  }
  const schema = parquetSchema(metadata);
  const names =
    "column" in read
      ? [columnOf(schema, read.column, path).element.name]
      : schema.children.map(({ element }) => element.name).filter((name) => read.columns.includes(name));
  if (names.length === 0)
    throw new DataError(
      `${path} has none of the columns ${(read as { columns: readonly string[] }).columns.join(", ")}, only ${someNames(schema.children.map(({ element }) => element.name))}; name its columns.`,
    );
  yield { values: [], first: 0, bytesEach: 0 };
  const bytesEach = size / Math.max(1, Number(metadata.num_rows));
  const parsers = {
    stringFromBytes: (bytes: Uint8Array | undefined) => bytes && decoder.decode(bytes),
    jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && exactJson(decoder.decode(bytes)),
  };
  let first = 0;
  for (const group of metadata.row_groups) {
    checkGroup(group, names, path);
    const rowEnd = first + Number(group.num_rows);
    let rows: Record<string, unknown>[];
    try {
      // Reads a whole group, because reading a part of one takes as long.
      rows = await parquetReadObjects({
        ...{ file, metadata, columns: names, rowStart: first, rowEnd, compressors },
        parsers,
      });
    } catch (error) {
      throw unreadableGroup(path, first, error as NodeJS.ErrnoException);
    }
    // Sends a few at a time: a group of equal texts is small in this thread, but each of them takes memory in the
    // thread that receives it.
    let [values, letters, from]: [unknown[], number, number] = [[], 0, first];
    for (const [i, row] of rows.entries()) {
      const value = "column" in read ? textOfRow(row, read.column, `${path}, row ${first + i}`) : exact(row, schema);
      values.push(value);
      letters += lettersOf(value);
      if (letters < lettersAtOnce) continue;
      yield { values, first: from, bytesEach };
      [values, letters, from] = [[], 0, first + i + 1];
    }
    yield { values, first: from, bytesEach };
    first = rowEnd;
  }
}

/** A value of a column with bigints for all integers, as `exactJson` has them; hyparquet gives those of 32 bits as numbers. */
function exact(value: unknown, column: SchemaTree): unknown {
  const { element, children } = column;
  const { type, converted_type: kind } = element;
  if (typeof value === "number") return type === "INT32" && kind !== "DECIMAL" ? BigInt(value) : value;
  const [child] = children;
  if (Array.isArray(value)) {
    const inner = kind !== "LIST" ? column : child!.children.length === 1 ? child!.children[0]! : child!;
    return value.map((each) => exact(each, inner));
  }
  if (child === undefined || Object.prototype.toString.call(value) !== "[object Object]") return value;
  const of = (key: string) =>
    kind === "MAP" ? child.children[1] : children.find(({ element }) => element.name === key);
  return Object.fromEntries(
    Object.entries(value as object).map(([key, inner]) => [key, exact(inner, of(key) ?? column)]),
  );
}

/** The top-level column that holds `column`: the column itself, or the struct around it. Throws `DataError`. */
function columnOf(schema: SchemaTree, column: string, path: string): SchemaTree {
  const found = schema.children.find(({ element }) => element.name === column);
  const leaves = (node: SchemaTree): string[] =>
    node.children.length === 0
      ? [node.path.join(".")]
      : node.children.some(({ element }) => element.repetition_type === "REPEATED")
        ? [] // a list or a map
        : node.children.flatMap(leaves);
  if (found && (found.children.length === 0 || leaves(found).includes(column))) return found;
  const inner = found === undefined ? [] : leaves(found);
  if (found && inner.length === 0)
    throw new DataError(`${path} has a list in ${column}, and no text; name a column of texts with data.column.`);
  if (found)
    throw new DataError(
      `${path} has a struct in ${column}, and no text; name a column of texts in it with data.column, such as ${someNames(inner)}.`,
    );
  const all = schema.children.flatMap(leaves);
  if (all.includes(column)) return schema.children.find((child) => leaves(child).includes(column))!;
  const shown =
    all.length > 0 ? someNames(all) : `lists in ${someNames(schema.children.map(({ element }) => element.name))}`;
  throw new DataError(`${path} has no column ${column}, only ${shown}; name the text's with data.column.`);
}

/** Throws `DataError` if a group cannot be read: it is encrypted, compressed in an unknown way, or too large. */
function checkGroup({ columns }: RowGroup, names: readonly string[], path: string): void {
  let bytes = 0;
  for (const { meta_data, crypto_metadata } of columns) {
    if (meta_data === undefined || !names.includes(meta_data.path_in_schema[0]!)) continue;
    if (crypto_metadata !== undefined) throw encrypted(path);
    if (!codecs.includes(meta_data.codec))
      throw new DataError(
        `${path} is compressed by ${meta_data.codec.replace("_RAW", "")}, which is not read here; write it again with another compression: zstd, snappy, gzip, brotli, or none.`,
      );
    bytes += Number(meta_data.total_uncompressed_size);
    if (bytes > largestInMemory())
      throw new DataError(
        `${path} has a group of rows whose texts have ${bytes} bytes, too many for memory; write it again with smaller groups.`,
      );
  }
}

const encrypted = (path: string) =>
  new DataError(`${path} is encrypted, which is not read here; write it again without encryption.`);

function unreadableGroup(path: string, row: number, { code, message }: NodeJS.ErrnoException): DataError {
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA")
    return new DataError(`${path}: a text from row ${row} on is not UTF-8; write it again with texts in UTF-8.`);
  return new DataError(`${path} cannot be read from row ${row} on: ${message}; fetch it again.`);
}

const groups = groupsOf(workerData as ParquetThreadData);

parentPort!.on("message", async () => {
  let answer: Answer;
  try {
    const { value } = await groups.next();
    answer = { group: value };
  } catch (error) {
    const ofData = error instanceof DataError;
    answer = { ofData, problem: ofData ? error.message : String((error as Error).stack ?? error) };
  }
  parentPort!.postMessage(answer);
});
