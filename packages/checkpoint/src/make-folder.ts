import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";

/**
 * Makes a folder, and the folders above it that are missing. Throws `CheckpointError`.
 * Node's own recursive mkdir never returns where a file system takes no folders and says ENOENT, such as /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  try {
    for (let at = resolve(path); !isFolder(at); at = dirname(at)) missing.push(at);
    for (const folder of missing.reverse()) make(folder);
  } catch (error) {
    const reason = missing.length > 0 && codeOf(error) === "ENOENT" ? "its disk takes no folders" : reasonOf(error);
    throw new CheckpointError(`Cannot create the folder ${path}: ${reason ?? error}.`, { cause: error });
  }
}

function isFolder(path: string): boolean {
  try {
    if (statSync(path).isDirectory()) return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
  throw Object.assign(new Error(`${path} is a file`), { code: "ENOTDIR" });
}

function make(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if (codeOf(error) !== "EEXIST" || !isFolder(folder)) throw error; // another process may have made it meanwhile
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;
