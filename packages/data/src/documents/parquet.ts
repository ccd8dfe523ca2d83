/** A column of text in a parquet file, read one group of rows after the other. */
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { DataError } from "../data-error.ts";
import type { DocumentOptions, Piece } from "./piece.ts";

export interface ParquetThreadData {
  readonly path: string;
  readonly column: string;
}

/** Texts of a group of rows, or some of them. */
export interface Group {
  readonly texts: readonly string[];
  readonly bytesEach: number; // of the file, for each row
}

/** `group` is undefined after the last one. */
export type Answer = { readonly group: Group | undefined } | { readonly problem: string; readonly ofData: boolean };

/**
 * How long a group may take. A damaged file can send hyparquet into a loop without end, or one that fills the memory.
 */
const limitSeconds = (fileBytes: number) => 30 + fileBytes / 1e6;

// In the sources the thread is this folder's file; in the published package it is beside the bundle.
const thread = new URL(
  import.meta.url.endsWith(".ts") ? "./parquet-thread.ts" : "./parquet-thread.js",
  import.meta.url,
);

/** The texts of a column of a parquet file. Throws `DataError`. */
export async function* parquetTexts(path: string, { column }: DocumentOptions): AsyncGenerator<Piece> {
  const limit = limitSeconds((await stat(path)).size);
  const worker = new Worker(thread, { workerData: { path, column } satisfies ParquetThreadData });
  try {
    for (;;) {
      const group = await nextGroup(worker, path, limit);
      if (group === undefined) return;
      for (const text of group.texts) yield { text, ends: true, bytes: group.bytesEach };
    }
  } finally {
    await worker.terminate();
  }
}

async function nextGroup(worker: Worker, path: string, limit: number): Promise<Group | undefined> {
  const damaged = (what: string) => new DataError(`${path} ${what}: it is probably damaged; fetch it again.`);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = damaged(`could not be read within ${Math.round(limit)} seconds`);
    timer = setTimeout(() => reject(error), 1000 * limit);
  });
  worker.postMessage("next");
  let answer: Answer;
  try {
    [answer] = (await Promise.race([once(worker, "message"), late])) as [Answer];
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY"
      ? damaged("needs more memory than a thread has")
      : error;
  } finally {
    clearTimeout(timer);
  }
  if (!("problem" in answer)) return answer.group;
  throw answer.ofData ? new DataError(answer.problem) : new Error(answer.problem);
}
