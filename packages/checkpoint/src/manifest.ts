/**
 * manifest.json of a save: a record of each of its files, and what else belongs to the save. It is written last, so a
 * folder that has one is complete. It holds its own checksum too:
 *
 *   { "version": 1, "files": [{ "name": "model.safetensors", "bytes": 4096, "crc32": "89abcdef", "tensors": { … } },
 *                            …],
 *     …, "crc32": "01234567" }
 *
 * Saves without a version are older than the first version number, and are read as version 1.
 */
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { atomicWriteText } from "./atomic-write.ts";
import { CheckpointError, cannot, OutOfReachError } from "./checkpoint-error.ts";
import type { FileRecord } from "./file-record.ts";
import { brief, parsedJson } from "./json.ts";
import { readRegularText } from "./regular-file.ts";

/** The name of a save's manifest. */
export const manifestFile = "manifest.json";

/** The version of the layout of saves. A layout that an older terse cannot read, or would read wrongly, has another. */
const version = 1;

const mostBytes = 1 << 28; // a thousand ranks that name a thousand tensors each have 2²⁶

/** The manifest of a save: a record of each of its files. Other keys may stand beside `files`. */
export interface Manifest {
  readonly files: readonly FileRecord[];
}

/** Writes the manifest of a folder, completely or not at all. `manifest` is JSON. Throws `CheckpointError`. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const versioned = { version, ...manifest };
  const sealed = { ...versioned, crc32: sealOf(versioned) };
  await atomicWriteText(join(folder, manifestFile), `${JSON.stringify(sealed)}\n`);
}

/** Reads the text of a folder's manifest; undefined where there is none. Throws `CheckpointError`. */
export function readManifestText(folder: string): string | undefined {
  try {
    return readRegularText(join(folder, manifestFile), mostBytes);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code!)) return undefined;
    throw cannot("read", join(folder, manifestFile), error);
  }
}

/**
 * Parses a manifest; `path` names its text in errors. Throws `CheckpointError` where a byte has changed since it was
 * written, and for another version.
 */
export function parseManifest<M extends Manifest>(text: string, path: string): M {
  const sealed = parsedJson(text) as (M & { version?: unknown; crc32?: unknown }) | undefined;
  const { crc32: seal, ...versioned } = { ...sealed };
  const { version: other = version, ...manifest } = versioned as { version?: unknown };
  if (Number.isSafeInteger(other) && other !== version)
    // whose checksum may be another one, too
    throw new OutOfReachError(
      `${path} is of version ${other} of saves, and this terse reads version ${version}; use the terse that wrote it, or an export of its model.`,
    );
  if (sealed === undefined || seal !== sealOf(versioned))
    throw new CheckpointError(`${path} was changed or damaged after it was saved; use an earlier save.`);
  const { files } = manifest as { files?: unknown };
  if (!Array.isArray(files) || !files.every(isRecord))
    throw new CheckpointError(`${path} has no list of files, each with name, bytes and crc32; use another save.`);
  const outside = files.find(({ name }) => !/^([\w-][\w.-]*\/)?[\w-][\w.-]*$/.test(name));
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
