import { statSync } from "node:fs";

/**
 * Whether there may be something at a path. `existsSync` says no also where the path is closed to this user, or its
 * disk is away now; this function says yes, and reading it then says what is wrong.
 */
export function mayExist(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    return !["ENOENT", "ENOTDIR", "ERR_INVALID_ARG_VALUE"].includes((error as NodeJS.ErrnoException).code!);
  }
}
