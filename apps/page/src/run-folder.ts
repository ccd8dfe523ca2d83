/** What a page reads of a run's folder. It writes nothing there. */
import { type Stats, statSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join, resolve } from "node:path";
import { LockWatch, openRegular, readRegularText } from "@terse/checkpoint";
import { runNames } from "./run-names.ts";

export interface RunState {
  readonly running: boolean;
  /** Seconds since the last line; undefined before the first one. */
  readonly age: number | undefined;
  /** The last line has no end: its process has died, or is writing now. */
  readonly cut: boolean;
}

/** A place in metrics.jsonl. A file that has been written anew, as a resumed run does, has another number. */
export interface Place {
  readonly file: number;
  readonly offset: number;
}

export const begin: Place = { file: 0, offset: 0 };
const chunkBytes = 1 << 18;
const longestLine = 1 << 24; // what is longer is no line of metrics
const mostRecipeBytes = 1 << 24;

export class RunFolder {
  readonly name: string;
  readonly recipe: Record<string, unknown> | undefined;
  /** What cannot be shown, and why, a line each. */
  readonly problems: readonly string[];
  readonly #metrics: string;
  readonly #running: () => boolean;
  #cut = false;

  /** `running` is for who knows it better than the folder's lock. */
  constructor(path: string, name: string, running?: () => boolean) {
    this.name = name;
    this.#metrics = join(path, "metrics.jsonl");
    this.#running = running ?? holds(new LockWatch(join(path, "lock.json")));
    const { recipe, problem } = readRecipe(join(path, "recipe.json"));
    this.recipe = recipe;
    const isOther = this.#stat()?.isFile() === false; // a pipe would be waited for without an end
    this.problems = [
      ...(problem === undefined ? [] : [problem]),
      ...(isOther ? ["metrics.jsonl is not a file, so no numbers are shown"] : []),
    ];
  }

  state(): RunState {
    const stat = this.#stat();
    const age = stat && Math.max(0, (Date.now() - stat.mtimeMs) / 1000);
    return { running: this.#running(), age, cut: this.#cut };
  }

  /** Whether there is more after `place`. */
  hasMore(place: Place): boolean {
    const stat = this.#stat();
    return stat !== undefined && (stat.ino !== place.file || stat.size !== place.offset);
  }

  /**
   * The whole lines after `place`, about 256 KiB at most, and the place after them. Where the file is another one than
   * that of `place`, `anew` is true and the lines are its first ones.
   */
  async linesAfter(place: Place): Promise<{ lines: string[]; next: Place; anew: boolean }> {
    await using handle = await openRegular(this.#metrics).catch(() => undefined);
    if (handle === undefined) return { lines: [], next: begin, anew: place.offset > 0 };
    const { ino: file, size } = await handle.stat();
    const anew = file !== place.file || size < place.offset;
    const offset = anew ? 0 : place.offset;
    const { text, bytes } = await wholeLines(handle, offset, size);
    this.#cut = offset + bytes < size && bytes === 0;
    const lines = text.split(/[\r\n]+/).filter((line) => line !== ""); // a return would end a line of the stream, too
    return { lines, next: { file, offset: offset + bytes }, anew: anew && place.file !== 0 };
  }

  #stat(): Stats | undefined {
    return statSync(this.#metrics, { throwIfNoEntry: false });
  }
}

/** Whether somebody holds the lock, as far as it can be seen. */
const holds = (watch: LockWatch) => () => {
  try {
    return watch.look() !== "free";
  } catch {
    return false; // it cannot be read
  }
};

/** As many whole lines as fit in a chunk, or one that does not. What is longer than any line is passed over. */
async function wholeLines(handle: FileHandle, offset: number, size: number): Promise<{ text: string; bytes: number }> {
  for (let length = Math.min(chunkBytes, size - offset); ; length = Math.min(2 * length, size - offset)) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset);
    const end = buffer.subarray(0, bytesRead).lastIndexOf("\n") + 1;
    if (end === 0 && bytesRead >= longestLine) return { text: "", bytes: bytesRead };
    if (end > 0 || length >= size - offset) return { text: buffer.toString("utf8", 0, end), bytes: end };
  }
}

function readRecipe(path: string): { recipe?: Record<string, unknown>; problem?: string } {
  try {
    const recipe: unknown = JSON.parse(readRegularText(path, mostRecipeBytes));
    if (typeof recipe === "object" && recipe !== null) return { recipe: recipe as Record<string, unknown> };
    return { problem: "recipe.json holds no recipe, so the recipe and the number of steps are not shown" };
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === "ENOENT";
    return {
      problem: `recipe.json ${absent ? "is missing" : "cannot be read"}, so the recipe and the number of steps are not shown`,
    };
  }
}

/** The runs of these folders. */
export function openRuns(paths: readonly string[], running?: () => boolean): RunFolder[] {
  const names = runNames(paths);
  return paths.map((path, i) => new RunFolder(resolve(path), names[i]!, running));
}
