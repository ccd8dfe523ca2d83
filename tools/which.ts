import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";

/** The file of a command on the PATH, or undefined. */
export function which(command: string, path = process.env["PATH"] ?? ""): string | undefined {
  for (const folder of path.split(delimiter)) {
    if (folder === "") continue;
    const file = resolve(folder, command);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not in this folder
    }
  }
  return undefined;
}
