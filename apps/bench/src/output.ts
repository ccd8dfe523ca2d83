/** Opens an output file before anything is measured. Throws `OptionsError` if it cannot be written. */
import { openSync } from "node:fs";
import { OptionsError } from "@terse/options";

const reasons: Record<string, string> = {
  ENOENT: "its folder does not exist",
  ENOTDIR: "its folder is a file",
  EISDIR: "it is a folder",
  EACCES: "permission denied",
  EROFS: "the disk is read-only",
};

export function openOutput(option: string, path: string, flags: "w" | "a" = "w"): number {
  try {
    return openSync(path, flags);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new OptionsError([`${option}: ${path} cannot be written: ${reasons[code] ?? message}`]);
  }
}
