/**
 * manifest.json of a save: a record of each of its files, and what else belongs to the save. It is written last, so a folder that has
 * one is complete. It holds its own checksum too:
 *
 *   { "files": [{ "name": "model.safetensors", "bytes": 4096, "crc32": "89abcdef", "tensors": { … } }, …], …, "crc32": "01234567" }
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { atomicWriteText } from "./atomic-write.ts";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import type { FileRecord } from "./file-record.ts";
import { brief } from "./safetensors-header.ts";

export const manifestFile = "manifest.json";

export interface Manifest {
  readonly files: readonly FileRecord[];
}

/** Writes the manifest of a folder, completely or not at all. `manifest` is JSON. Throws `CheckpointError`. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const sealed = { ...manifest, crc32: sealOf(manifest) };
  await atomicWriteText(join(folder, manifestFile), `${JSON.stringify(sealed)}\n`);
}

/** Reads the text of a folder's manifest; undefined where there is none. Throws `CheckpointError`. */
export function readManifestText(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, manifestFile), "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code!)) return undefined;
    throw new CheckpointError(`Cannot read ${join(folder, manifestFile)}: ${reasonOf(error) ?? error}.`, {
      cause: error,
    });
  }
}

/** The manifest in a text that `path` names in errors. Throws `CheckpointError` where a byte has changed since it was written. */
export function parseManifest<M extends Manifest>(text: string, path: string): M {
  let sealed: (M & { crc32?: unknown }) | undefined;
  try {
    sealed = JSON.parse(text) as M;
  } catch {
    // reported below
  }
  const { crc32: seal, ...manifest } = { ...sealed };
  if (sealed === undefined || seal !== sealOf(manifest))
    throw new CheckpointError(`${path} was changed or damaged after it was saved; use an earlier save.`);
  const { files } = manifest as { files?: unknown };
  if (!Array.isArray(files) || !files.every(isRecord))
    throw new CheckpointError(`${path} has no list of files, each with name, bytes and crc32; use another save.`);
  const outside = files.find(({ name }) => !/^[\w-][\w.-]*$/.test(name));
  if (outside)
    throw new CheckpointError(
      `${path} names the file ${brief(outside.name)}, which is not in its folder; use another save.`,
    );
  return manifest as unknown as M;
}

const isRecord = (record: Partial<FileRecord> | null): record is FileRecord =>
  typeof record?.name === "string" && Number.isSafeInteger(record.bytes) && typeof record.crc32 === "string";

/** The checksum of a manifest that has none yet. */
export const sealOf = (manifest: object) => crc32(JSON.stringify(manifest)).toString(16).padStart(8, "0");
