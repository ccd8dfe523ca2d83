/**
 * The files of a text: the same ones in the same order on every machine that has the same folder.
 *
 * Of a folder, all text files are taken (no zero byte in their first 8 KiB, as git and grep define it), in the order of their paths. Paths
 * are compared by code units, not by the locale. Names that start with a dot are skipped. A file or folder that several symbolic links
 * lead to is taken once.
 */
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import { byCodeUnit } from "../files-at.ts";

export interface SizedFile {
  readonly path: string;
  readonly size: number; // bytes
}

/** A single file as it is, also if it is not text, or the text files of a folder, in order. Throws `DataError`. */
export async function textFiles(
  path: string,
  extensions?: readonly string[],
  { binary = false }: { binary?: boolean } = {}, // files with zero bytes too
): Promise<readonly SizedFile[]> {
  if (path.trim() === "") throw new DataError("The data path is empty; name a file or a folder of text.");
  const status = await statusOf(path, `There is no file or folder at ${path}; check the data path.`);
  if (status.isFile()) {
    if (status.size === 0) throw new DataError(`The file ${path} is empty; name a file with text in it.`);
    return [{ path, size: status.size }];
  }
  if (!status.isDirectory())
    throw new DataError(`${path} is neither a file nor a folder; copy its text into a file and name that.`);

  const files: SizedFile[] = [];
  await collect(path, { extensions, binary }, new Set(), files);
  if (files.length === 0) {
    const kind = extensions ? `no text file that ends in ${extensions.join(" or ")}` : "no text file";
    throw new DataError(`There is ${kind} in ${path} or the folders below it; name a folder with text in it.`);
  }
  return files;
}

async function collect(
  folder: string,
  wanted: { extensions: readonly string[] | undefined; binary: boolean },
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
    const status = await statusOf(path, `${path} is a broken link; remove it, or create its target.`);
    if (status.isDirectory()) await collect(path, wanted, seen, files);
    if (!status.isFile() || status.size === 0) continue;
    if (wanted.extensions && !wanted.extensions.some((extension) => name.endsWith(extension))) continue;
    const realFile = await reading(path, () => realpath(path));
    if (seen.has(realFile)) continue;
    seen.add(realFile);
    if (wanted.binary || (await isText(path))) files.push({ path, size: status.size });
  }
}

export { byCodeUnit } from "../files-at.ts";

/** Whether a file has no zero byte in its first 8 KiB. Throws `DataError`. */
export async function isText(path: string): Promise<boolean> {
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
  new DataError(`Cannot read ${path}: ${reasonOf(error)}; make it readable, or remove it from the data path.`);
