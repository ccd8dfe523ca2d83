/** A column of text in a parquet file, read one group of rows after the other. */
import { stat } from "node:fs/promises";
import zlib from "node:zlib";
import {
  asyncBufferFromFile,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
} from "hyparquet";
import { DataError } from "../data-error.ts";
import type { DocumentOptions, Piece } from "./documents.ts";

/** Snappy is hyparquet's own. */
const compressors: Compressors = {
  GZIP: (bytes) => zlib.gunzipSync(bytes),
  BROTLI: (bytes) => zlib.brotliDecompressSync(bytes),
  ZSTD: (bytes) => zlib.zstdDecompressSync(bytes),
};

/** Throws `DataError`. */
export async function* parquetTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
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
  const rows = Number(metadata.num_rows);
  let first = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = first + Number(num_rows);
    let read: Record<string, unknown>[];
    try {
      // All of a group: a part of one takes as long.
      read = await parquetReadObjects({ file, metadata, columns: [column], rowStart: first, rowEnd, compressors });
    } catch (error) {
      throw new DataError(`${path} cannot be read from row ${first} on: ${(error as Error).message}; fetch it again.`);
    }
    for (const [i, row] of read.entries()) {
      const text = row[column];
      if (typeof text !== "string")
        throw new DataError(
          `${path}, row ${first + i} has no text in ${column}, but ${text === null ? "nothing" : `a ${typeof text}`}; name a column of texts with data.column.`,
        );
      yield { text, ends: true, bytes: size / rows };
    }
    first = rowEnd;
  }
}
