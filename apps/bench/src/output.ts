/** Files that the user names: opened before anything is measured, and each error with the option and the path. */
import { openSync, writeFileSync } from "node:fs";
import { OptionsError } from "@terse/options";

const reasons: Record<string, string> = {
  ENOENT: "it does not exist",
  ENOTDIR: "its folder is a file",
  EISDIR: "it is a folder",
  EACCES: "permission denied",
  EROFS: "the disk is read-only",
  ENOSPC: "no space is left on its disk",
  EDQUOT: "your disk quota is used up",
};

/** Why the system does not read or write a file. */
export function whyNot(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return reasons[code] ?? message;
}

/** Throws `OptionsError` if the file cannot be written. */
export const openOutput = (option: string, path: string, flags: "w" | "a" = "w"): number =>
  written(option, path, () => openSync(path, flags));

/** `file`: the path, or what `openOutput` has given, behind what has been written there. Throws `OptionsError`. */
export const writeOutput = (option: string, path: string, file: number | string, text: string): void =>
  written(option, path, () => writeFileSync(file, text));

function written<T>(option: string, path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw new OptionsError([
      `${option}: ${path} cannot be written: ${isMissing ? "its folder does not exist" : whyNot(error)}`,
    ]);
  }
}
