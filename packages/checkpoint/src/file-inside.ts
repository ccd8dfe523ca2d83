import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { CheckpointError, cannot } from "./checkpoint-error.ts";
import { checkRegular } from "./regular-file.ts";

/**
 * The real path of a file that belongs to a folder, for callers that publish its content. Throws `CheckpointError`
 * where a link leads out of the folder, and where the path is no regular file. In the cache of Hugging Face the files
 * of a snapshot are links to the blobs of the same repository:
 *
 *   models--gpt2/snapshots/607a30d…/config.json → ../../blobs/1085…
 */
export function fileInside(folder: string, name: string): string {
  const path = join(folder, name);
  try {
    const [root, real] = [realpathSync(folder), realpathSync(path)];
    checkRegular(statSync(real));
    const isSnapshot = basename(dirname(root)) === "snapshots";
    const allowed = [root, ...(isSnapshot ? [join(dirname(dirname(root)), "blobs")] : [])];
    if (allowed.some((each) => real.startsWith(each + sep))) return real;
    throw new CheckpointError(`${path} leads to ${real}, outside of its folder; put a copy of that file in its place.`);
  } catch (error) {
    if (error instanceof CheckpointError) throw error;
    throw cannot("read", path, error);
  }
}
