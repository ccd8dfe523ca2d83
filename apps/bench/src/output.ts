/** A file that an option names: opened before anything is measured, and in one line where it cannot be. */
import { openSync } from "node:fs";
import { OptionsError } from "@terse/options";

const reasons: Record<string, string> = {
  ENOENT: "its folder does not exist",
  ENOTDIR: "its folder is a file",
  EISDIR: "it is a folder",
  EACCES: "it is not yours to write",
  EROFS: "the disk is read-only",
};

export function openOutput(option: string, path: string): number {
  try {
    return openSync(path, "w");
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new OptionsError([`${option}: ${path} cannot be written: ${reasons[code] ?? message}`]);
  }
}
