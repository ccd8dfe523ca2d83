import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DataError, reasonOf } from "./data-error.ts";

/**
 * Makes a folder, and the folders above it that are missing. Throws `DataError`.
 * Node's own recursive mkdir never returns where a file system takes no folders and says ENOENT, such as /proc.
 */
export function makeFolder(path: string): void {
  try {
    make(resolve(path));
  } catch (error) {
    const isRefused = (error as NodeJS.ErrnoException).code === "ENOENT";
    const reason = isRefused ? "its disk takes no folders" : reasonOf(error);
    throw new DataError(`Cannot make the folder ${path}: ${reason}; name another one with --out.`);
  }
}

function make(path: string): void {
  const isFolder = () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isFolder()) return;
  make(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    if (!isFolder()) throw error; // another process may have made it meanwhile
  }
}
