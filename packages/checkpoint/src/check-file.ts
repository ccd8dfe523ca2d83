/** Whether a file still holds what was written. */
import { join } from "node:path";
import { CheckpointError, cannot, reasonOf } from "./checkpoint-error.ts";
import { type DType, showShape } from "./dtypes.ts";
import { Checksum, type FileRecord } from "./file-record.ts";
import { openRegular } from "./regular-file.ts";
import { openSafetensors } from "./safetensors.ts";

const damage = "it was changed or damaged after it was saved; use an earlier save";
const chunkBytes = 1 << 22;

/**
 * Reads a whole file of a folder, and throws `CheckpointError` unless its content is what `record` says. `others` are
 * the records of the same save: if the file has the content of one of them, the error names it.
 */
export async function checkFile(folder: string, record: FileRecord, others: readonly FileRecord[] = []): Promise<void> {
  const path = join(folder, record.name);
  const found = await checksumOf(path);
  if (found.bytes === record.bytes && found.crc32 === record.crc32) return;
  const other = others.find(({ bytes, crc32 }) => bytes === found.bytes && crc32 === found.crc32);
  if (other)
    throw new CheckpointError(`${path} has the content of ${other.name}: the files were swapped; rename them.`);
  if (found.bytes !== record.bytes)
    throw new CheckpointError(`${path} has ${found.bytes} bytes, and ${record.bytes} were saved: ${damage}.`);
  if (record.tensors) {
    await using file = await openSafetensors(path);
    const problem = difference(record.tensors, Object.fromEntries(file.tensors));
    if (problem !== undefined) throw new CheckpointError(`${path} is not what was saved: ${problem}: ${damage}.`);
  }
  throw new CheckpointError(
    `${path} is not what was saved: its checksum is ${found.crc32}, and was ${record.crc32}: ${damage}.`,
  );
}

/** The first tensor that is not the same in both. */
function difference(
  saved: NonNullable<FileRecord["tensors"]>,
  found: NonNullable<FileRecord["tensors"]>,
): string | undefined {
  const words = (tensor?: { dtype: DType; shape: readonly number[] }) =>
    tensor ? `${tensor.dtype} ${showShape(tensor.shape)}` : "absent";
  const name = [...new Set([...Object.keys(saved), ...Object.keys(found)])].find(
    (each) => words(saved[each]) !== words(found[each]),
  );
  return name === undefined ? undefined : `the tensor ${name} was ${words(saved[name])} and is ${words(found[name])}`;
}

/** What a file of a folder holds now. Throws `CheckpointError`. */
export async function recordOf(folder: string, name: string): Promise<FileRecord> {
  const { bytes, crc32 } = await checksumOf(join(folder, name));
  return { name, bytes, crc32 };
}

async function checksumOf(path: string): Promise<Checksum> {
  try {
    await using file = await openRegular(path);
    const [sum, chunk] = [new Checksum(), new Uint8Array(chunkBytes)];
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length);
      if (bytesRead === 0) return sum;
      sum.add(chunk.subarray(0, bytesRead));
    }
  } catch (error) {
    throw reasonOf(error) === undefined ? error : cannot("read", path, error);
  }
}
