/**
 * A model in the layout of Hugging Face: a folder with config.json and with weights, in one file or in shards.
 * transformers opens it with `from_pretrained`, PyTorch with `safetensors.torch.load_file`, and what they saved can be
 * opened here.
 */
import { type Config, configFile } from "./config-file.ts";
import { elementCount, elements } from "./dtypes.ts";
import type { FileRecord } from "./file-record.ts";
import { makeFolder } from "./make-folder.ts";
import { partsOf, type TensorInParts, type Tensors, type WritableTensor } from "./safetensors.ts";
import { writeJson, writeWeights } from "./weights.ts";
import { pairsOf } from "./written-tensors.ts";

/**
 * Writes `folder`/config.json and then the weights, each completely or not at all, also where the folder has older
 * ones. Creates the folder. `parameters` is `model.stateDict()`, with PyTorch's names, and `storedAs` gives those of
 * the files, where they differ. With `shardBytes`, more bytes than these are written as shards and an index. Resolves
 * to a record of each file. Throws `CheckpointError`.
 */
export async function saveModel(
  folder: string,
  parameters: Tensors,
  config: Config,
  options: SaveOptions = {},
): Promise<FileRecord[]> {
  makeFolder(folder);
  const { shardBytes = Number.POSITIVE_INFINITY } = options;
  const tensors = [...underNames(pairsOf("Cannot save the model", parameters), options)];
  return [await writeJson(folder, configFile, config), ...(await writeWeights(folder, tensors, shardBytes))];
}

/** How a model's weights are written: the largest size of a shard, and the names of parameters in the files. */
export interface SaveOptions {
  readonly shardBytes?: number;
  /**
   * The names of a parameter in the files: one, or several, each of which has as many of its rows, one after the other.
   */
  storedAs?(parameter: string): readonly string[];
}

function* underNames(parameters: Tensors, options: SaveOptions): Generator<readonly [string, WritableTensor]> {
  for (const [parameter, tensor] of parameters) {
    const names = options.storedAs?.(parameter) ?? [parameter];
    for (const [i, name] of names.entries())
      yield [name, names.length === 1 ? tensor : rowsOf(tensor, i, names.length)];
  }
}

/** The i-th of `count` equal blocks of the rows. */
function rowsOf(tensor: WritableTensor, i: number, count: number): TensorInParts {
  const { dtype } = tensor;
  const [rows, ...rest] = tensor.shape as [number, ...number[]];
  const shape = [rows / count, ...rest];
  const bytes = elementCount(shape) * elements[dtype].bytes;
  const [begin, end] = [i * bytes, (i + 1) * bytes];
  async function* parts() {
    let at = 0; // bytes of the whole tensor before the part
    for await (const { buffer, byteOffset, byteLength } of partsOf(tensor)) {
      const [from, to] = [Math.max(begin - at, 0), Math.min(end - at, byteLength)];
      if (from < to) yield new Uint8Array(buffer, byteOffset + from, to - from);
      at += byteLength;
    }
  }
  return { dtype, shape, parts };
}
