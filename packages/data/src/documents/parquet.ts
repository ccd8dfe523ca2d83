/** A column of text in a parquet file, or whole rows of it, read one group of rows after the other. */
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { DataError } from "../data-error.ts";
import { programBeside } from "../program-beside.ts";
import type { DocumentOptions, DocumentRow, Piece } from "./piece.ts";

export interface ParquetThreadData {
  readonly path: string;
  /** The texts of one column, or objects with those of these columns that the file has. */
  readonly read: { readonly column: string } | { readonly columns: readonly string[] };
}

/** What a group of rows has, or some of them. */
export interface Group {
  readonly values: readonly unknown[];
  readonly first: number; // the number of its first row
  readonly bytesEach: number; // of the file, for each row
}

/** `group` is undefined after the last one. */
export type Answer = { readonly group: Group | undefined } | { readonly problem: string; readonly ofData: boolean };

/**
 * How long a group may take. A damaged file can send hyparquet into a loop without end, or one that fills the memory.
 */
const limitSeconds = (fileBytes: number) => 30 + fileBytes / 1e6;

const thread = programBeside(import.meta.url, "parquet-thread");

/** The texts of a column of a parquet file. Throws `DataError`. */
export async function* parquetTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
  for await (const { values, bytesEach } of groupsOf({ path, read: { column } }))
    for (const text of values as readonly string[]) yield { text, ends: true, bytes: bytesEach };
}

/** The rows of a parquet file, with those of these columns that it has. Throws `DataError`. */
export async function* parquetRows(path: string, columns: readonly string[]): AsyncGenerator<DocumentRow> {
  for await (const { values, first, bytesEach } of groupsOf({ path, read: { columns } }))
    for (const [i, value] of values.entries()) yield { value, where: `${path}, row ${first + i}`, bytes: bytesEach };
}

async function* groupsOf(workerData: ParquetThreadData): AsyncGenerator<Group> {
  const { path } = workerData;
  const limit = limitSeconds((await stat(path)).size);
  const worker = new Worker(thread, { workerData });
  try {
    for (;;) {
      const group = await nextGroup(worker, path, limit);
      if (group === undefined) return;
      yield group;
    }
  } finally {
    await worker.terminate();
  }
}

async function nextGroup(worker: Worker, path: string, limit: number): Promise<Group | undefined> {
  const damaged = (what: string) => new DataError(`${path} ${what}: it is probably damaged; fetch it again.`);
  const signal = AbortSignal.timeout(Math.ceil(1000 * limit));
  worker.postMessage("next");
  let answer: Answer;
  try {
    [answer] = (await once(worker, "message", { signal })) as [Answer];
  } catch (error) {
    if (signal.aborted) throw damaged(`could not be read within ${Math.round(limit)} seconds`);
    throw (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY"
      ? damaged("needs more memory than a thread has")
      : error;
  }
  if (!("problem" in answer)) return answer.group;
  throw answer.ofData ? new DataError(answer.problem) : new Error(answer.problem);
}
