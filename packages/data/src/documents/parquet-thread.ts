/** The thread that reads a parquet file: it answers each message with the texts of the next group of rows. */
import { stat } from "node:fs/promises";
import { parentPort, workerData } from "node:worker_threads";
import zlib from "node:zlib";
import {
  asyncBufferFromFile,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
} from "hyparquet";
import { DataError } from "../data-error.ts";
import type { Answer, Group, ParquetThreadData } from "./parquet.ts";

/** Snappy is hyparquet's own. */
const compressors: Compressors = {
  GZIP: (bytes) => zlib.gunzipSync(bytes),
  BROTLI: (bytes) => zlib.brotliDecompressSync(bytes),
  ZSTD: (bytes) => zlib.zstdDecompressSync(bytes),
};

/** The first group is empty: only the metadata has been read. Throws `DataError`. */
async function* groupsOf({ path, column }: ParquetThreadData): AsyncGenerator<Group> {
  const { size } = await stat(path);
  const file = await asyncBufferFromFile(path);
  let metadata: FileMetaData;
  try {
    metadata = await parquetMetadataAsync(file);
  } catch (error) {
    throw new DataError(`${path} is no parquet file, or is cut short: ${(error as Error).message}; fetch it again.`);
  }
  const columns = metadata.schema.slice(1).map(({ name }) => name);
  if (!columns.includes(column))
    throw new DataError(
      `${path} has no column ${column}, only ${columns.join(", ")}; name the text's with data.column.`,
    );
  const bytesEach = size / Number(metadata.num_rows);
  yield { texts: [], bytesEach };
  let first = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = first + Number(num_rows);
    let rows: Record<string, unknown>[];
    try {
      // All of a group: a part of one takes as long.
      rows = await parquetReadObjects({ file, metadata, columns: [column], rowStart: first, rowEnd, compressors });
    } catch (error) {
      throw new DataError(`${path} cannot be read from row ${first} on: ${(error as Error).message}; fetch it again.`);
    }
    const texts = rows.map(({ [column]: text }, i) => {
      if (typeof text === "string") return text;
      throw new DataError(
        `${path}, row ${first + i} has no text in ${column}, but ${text === null ? "nothing" : `a ${typeof text}`}; name a column of texts with data.column.`,
      );
    });
    yield { texts, bytesEach };
    first = rowEnd;
  }
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
