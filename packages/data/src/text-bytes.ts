/**
 * A file or a folder of text as bytes, the same bytes on every machine that has the same files.
 *
 * In a folder: every file that is text (no zero byte in its first 8 KiB, the rule of git and grep), in the order of its
 * path compared by code units, not by the machine's language. Names that start with a dot are left out. A file or folder
 * that symbolic links reach twice is read once.
 */
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { DataError, reasonOf } from "./data-error.ts";
import { readFiles, type SizedFile } from "./read-files.ts";

export interface TextOptions {
  /** Only names that end so, such as [".txt", ".md"]; all text files when absent. */
  readonly extensions?: readonly string[] | undefined;
  /** The most bytes to hold; by default nine tenths of the memory that this process may still use. */
  readonly limitBytes?: number | undefined;
}

/**
 * The text at `path`, whole, in one array. One file is taken as it is, whatever is in it; of a folder, its text files are
 * joined. Files may be larger than 2 GiB, but all must fit in memory. Throws `DataError`.
 */
export async function textBytes(path: string, options: TextOptions = {}): Promise<Uint8Array> {
  if (path.trim() === "") throw new DataError("The data path is empty; name a file or a folder of text.");
  const files = await textFiles(path, options.extensions);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const limit = options.limitBytes ?? Math.floor(process.availableMemory() * 0.9);
  if (total > limit)
    throw new DataError(
      `The text at ${path} has ${total} bytes and is kept in memory, where ${limit} are allowed; name a smaller part of it.`,
    );
  return readFiles(files);
}

/** The files that `textBytes` reads, in its order. */
export async function textFiles(path: string, extensions?: readonly string[]): Promise<readonly SizedFile[]> {
  const status = await statusOf(path, `There is no file or folder at ${path}; check the data path.`);
  if (status.isFile()) {
    if (status.size === 0) throw new DataError(`The file ${path} is empty; name a file with text in it.`);
    return [{ path, size: status.size }];
  }
  if (!status.isDirectory())
    throw new DataError(`${path} is neither a file nor a folder; copy its text into a file and name that.`);

  const files: SizedFile[] = [];
  await collect(path, extensions, new Set(), files);
  if (files.length === 0) {
    const kind = extensions ? `no text file that ends in ${extensions.join(" or ")}` : "no text file";
    throw new DataError(`There is ${kind} in ${path} or the folders below it; name a folder with text in it.`);
  }
  return files;
}

async function collect(
  folder: string,
  extensions: readonly string[] | undefined,
  seen: Set<string>,
  files: SizedFile[],
): Promise<void> {
  const real = await reading(folder, () => realpath(folder));
  if (seen.has(real)) return;
  seen.add(real);
  const names = await reading(folder, () => readdir(folder));
  for (const name of names.sort(byCodeUnit)) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    const status = await statusOf(path, `${path} is a link to nothing; remove it, or make what it points to.`);
    if (status.isDirectory()) await collect(path, extensions, seen, files);
    if (!status.isFile() || status.size === 0) continue;
    if (extensions && !extensions.some((extension) => name.endsWith(extension))) continue;
    const realFile = await reading(path, () => realpath(path));
    if (seen.has(realFile)) continue;
    seen.add(realFile);
    if (await isText(path)) files.push({ path, size: status.size });
  }
}

export const byCodeUnit = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

async function isText(path: string): Promise<boolean> {
  return reading(path, async () => {
    await using file = await open(path, "r");
    const start = new Uint8Array(8192);
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    return !start.subarray(0, bytesRead).includes(0);
  });
}

async function statusOf(path: string, absent: string) {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw new DataError(absent);
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

const unreadable = (path: string, error: unknown) =>
  new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or leave it out of the data path.`);
