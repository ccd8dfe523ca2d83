/**
 * The files that one rank writes for a save. Knows no other ranks and no libtorch, so that it can run on its own
 * thread.
 */
import { hostname } from "node:os";
import { join } from "node:path";
import {
  type AdapterFiles,
  allFinite,
  CheckpointError,
  type Config,
  makeFolder,
  type StoredTensor,
  saveAdapter,
  saveModel,
  type TensorInParts,
  writeSafetensors,
} from "@terse/checkpoint";
import { averageFolder, type SavedFile, stateFile } from "./save-folder.ts";

export type NamedTensor = readonly [name: string, tensor: StoredTensor];

/** Copies of a rank's tensors, and what else its files say. */
export interface SaveFiles {
  readonly rank: number;
  /** The optimizer's state on this rank. */
  readonly state: readonly NamedTensor[];
  readonly metadata: Readonly<Record<string, string>>; // of the state's file
  /** On rank 0. */
  readonly model?: SavedModel | undefined;
  /** The same with the average of its weights, on rank 0 of a run that has one. */
  readonly average?: SavedModel | undefined;
}

export interface SavedModel {
  readonly tensors: readonly NamedTensor[];
  readonly config: Config;
  /** Of a model with an adapter, whose tensors these are. */
  readonly adapter?: Pick<AdapterFiles, "adapterConfig" | "metadata"> | undefined;
  /** The names under which each tensor is saved, where they are not its own. */
  readonly storedAs?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * A value of the model or of an optimizer is NaN or infinite, or a rank has refused a step because of one: such a save
 * shall not take the place of a good one.
 */
export class NotFiniteError extends CheckpointError {}

/** Bytes that are checked, summed up and written while they are in a processor's cache. */
const partBytes = 1 << 20;

/**
 * Makes the folder and writes the files into it; calls `pace` after each mebibyte. Resolves to the files' records.
 * Throws `CheckpointError`.
 */
export async function writeFiles(
  folder: string,
  { rank, state, metadata, model, average }: SaveFiles,
  pace: () => void = () => {},
): Promise<SavedFile[]> {
  makeFolder(folder);
  const ofState = finite(state, `of rank ${rank}'s state`, pace);
  const files = [await writeSafetensors(join(folder, stateFile(rank)), ofState, metadata)];
  for (const [where, saved, what] of [
    ["", model, "of the model"],
    [averageFolder, average, "of the average"],
  ] as const) {
    if (!saved) continue;
    const { tensors, config, storedAs, adapter } = saved;
    const names = storedAs ? { storedAs: (name: string) => storedAs[name]! } : {};
    const values = finite(tensors, what, pace);
    const written = adapter
      ? await saveAdapter(join(folder, where), { tensors: values, config, ...adapter })
      : await saveModel(join(folder, where), values, config, names);
    files.push(...written.map((file) => ({ ...file, name: join(where, file.name) })));
  }
  return files.map((file) => ({ ...file, rank, host: hostname() }));
}

/** Tensors in parts. Reading one throws where a value of it is not finite. */
function* finite(
  tensors: readonly NamedTensor[],
  where: string,
  pace: () => void,
): Generator<readonly [string, TensorInParts]> {
  for (const [name, { dtype, shape, data }] of tensors) {
    const length = partBytes / data.BYTES_PER_ELEMENT;
    function* parts() {
      for (let at = 0; at < data.length; at += length) {
        const part = data.subarray(at, at + length);
        if (!allFinite(dtype, part)) throw new NotFiniteError(`${name} ${where} has values that are not finite`);
        yield part;
        pace();
      }
    }
    yield [name, { dtype, shape, parts }];
  }
}
