/** For tests: a folder with some files of a kernel's /proc and /sys, in place of the root folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** What `read` returns for the root folder of a machine that has these files. */
export function onMachine<T>(files: Readonly<Record<string, string>>, read: (root: string) => T): T {
  const root = mkdtempSync(join(tmpdir(), "terse-kernel-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return read(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}
