/**
 * The files at a data path: the same ones in the same order on every machine that has the same folder.
 *
 * A folder stands for the files in it and below it, ordered by path. Paths are compared by code units, not by the
 * locale. Names that start with a dot are skipped. A file or folder that several symbolic links lead to is taken once.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { DataError, unreadable } from "./data-error.ts";

export interface SizedFile {
  readonly path: string;
  readonly size: number; // bytes
}

export interface LeftOutFile extends SizedFile {
  readonly why: string; // a few words
}

export interface FilesAt {
  readonly isFolder: boolean;
  readonly files: readonly SizedFile[]; // regular ones, none of them empty
  readonly leftOut: readonly LeftOutFile[];
}

/** A single file, or the files of a folder, with those below it unless it is to be read `flat`. Throws `DataError`. */
export async function filesAt(path: string, { flat = false } = {}): Promise<FilesAt> {
  if (path.trim() === "") throw new DataError("The data path is empty; name a file or a folder with data.");
  const status = await statusOf(
    path,
    `There is no file or folder at ${path}; ${
      /^\w+:\/\//.test(path)
        ? "data is not fetched: download it, and name the file"
        : "check the data path, or name your own data with --data PATH"
    }.`,
  );
  if (status.isFile()) {
    if (status.size === 0) throw new DataError(`The file ${path} is empty; name one that is not.`);
    return { isFolder: false, files: [{ path, size: status.size }], leftOut: [] };
  }
  if (!status.isDirectory())
    throw new DataError(`${path} is neither a file nor a folder; copy its content into a file and name that.`);
  const [files, leftOut]: [SizedFile[], LeftOutFile[]] = [[], []];
  await collect(path);
  return { isFolder: true, files, leftOut };

  async function collect(folder: string, seen = new Map<string, string>()): Promise<void> {
    const real = await reading(folder, () => realpath(folder));
    if (seen.has(real)) return;
    seen.set(real, folder);
    const names = await reading(folder, () => readdir(folder));
    for (const name of names.sort(byCodeUnit)) {
      if (name.startsWith(".")) continue;
      const path = join(folder, name);
      const status = await statusOf(path, `${path} is a broken link; remove it, or create its target.`);
      const leave = (why: string) => leftOut.push({ path, size: status.isFile() ? status.size : 0, why });
      if (status.isDirectory()) {
        if (flat) leave("a folder");
        else await collect(path, seen);
      } else if (!status.isFile()) leave("no regular file");
      else if (status.size === 0) leave("empty");
      else {
        const realFile = await reading(path, () => realpath(path));
        const same = seen.get(realFile);
        if (same !== undefined) leave(`the same file as ${basename(same)}`);
        else files.push({ path, size: status.size });
        seen.set(realFile, path);
      }
    }
  }
}

export const byCodeUnit = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

async function statusOf(path: string, absent: string) {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && !path.includes("\ufffd")) throw new DataError(absent);
    throw unreadable(path, error);
  }
}

async function reading<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw unreadable(path, error);
  }
}
