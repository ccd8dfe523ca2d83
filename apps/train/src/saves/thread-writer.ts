/**
 * Writes the files of saves on a thread of its own. The thread owns the copies of the tensors while it writes, and
 * returns them for the next save to fill.
 */
import { Worker } from "node:worker_threads";
import { CheckpointError } from "@terse/checkpoint";
import { NotFiniteError, type SaveFiles } from "./save-files.ts";
import type { SavedFile } from "./save-folder.ts";

export interface Request {
  readonly folder: string;
  readonly files: SaveFiles;
  /** Its one element is 1 when somebody waits for the save. */
  readonly waits: Int32Array;
}

export type Answer = { readonly files: SaveFiles } & (
  | { readonly written: SavedFile[] }
  | { readonly problem: string; readonly kind: "not finite" | "checkpoint" | "other" }
);

/** What writes the files of a save: this thread (`here`), or a `ThreadWriter`. */
export interface Writer {
  /** Memory of the save before, for the next one. */
  readonly spare?: SaveFiles | undefined;
  /** See `writeFiles`. One call at a time. */
  write(folder: string, files: SaveFiles): Promise<SavedFile[]>;
}

export class ThreadWriter implements Writer, AsyncDisposable {
  spare: SaveFiles | undefined;
  #worker: Worker | undefined; // begins with the first save
  #asked: PromiseWithResolvers<Answer> | undefined;
  readonly #waits = new Int32Array(new SharedArrayBuffer(4));

  /** Takes its time, in which steps have the processors, until `hurry` is called. */
  async write(folder: string, files: SaveFiles): Promise<SavedFile[]> {
    this.spare = undefined;
    Atomics.store(this.#waits, 0, 0);
    const answer = await this.#ask({ folder, files, waits: this.#waits });
    this.spare = answer.files;
    if ("written" in answer) return answer.written;
    const { problem, kind } = answer;
    if (kind === "not finite") throw new NotFiniteError(problem);
    throw kind === "checkpoint" ? new CheckpointError(problem) : new Error(problem);
  }

  /** Ends the write that is under way as soon as can be. */
  hurry(): void {
    Atomics.store(this.#waits, 0, 1);
    Atomics.notify(this.#waits, 0);
  }

  async #ask(request: Request): Promise<Answer> {
    this.#asked = Promise.withResolvers();
    this.#worker ??= this.#begin();
    this.#worker.ref();
    this.#worker.postMessage(request, memoryOf(request.files));
    try {
      return await this.#asked.promise;
    } finally {
      this.#worker?.unref(); // it does not keep the process alive while it has nothing to write
    }
  }

  #begin(): Worker {
    const worker = new Worker(new URL("./save-thread.ts", import.meta.url));
    const ended = (error: Error) => {
      this.#worker = undefined; // the next save begins another one
      this.#asked?.reject(error);
    };
    worker.on("message", (answer: Answer) => this.#asked!.resolve(answer));
    worker.on("error", ended);
    worker.on("exit", (code) => ended(new Error(`the thread that writes saves ended with code ${code}`)));
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }
}

/** The memory that goes from thread to thread with the files. */
export const memoryOf = ({ state, model, average }: SaveFiles): ArrayBuffer[] =>
  [...state, ...(model?.tensors ?? []), ...(average?.tensors ?? [])].map(([, { data }]) => data.buffer as ArrayBuffer);
