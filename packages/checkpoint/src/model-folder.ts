/**
 * A model in the layout of Hugging Face: a folder with config.json and with model.safetensors, which has PyTorch's names. PyTorch opens it
 * with `safetensors.torch.load_file`, and files that PyTorch saved can be opened here.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { allFinite } from "./all-finite.ts";
import { atomicWrite, writeAll } from "./atomic-write.ts";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import { type DType, showShape } from "./dtypes.ts";
import { Checksum, type FileRecord } from "./file-record.ts";
import { makeFolder } from "./make-folder.ts";
import {
  openSafetensors,
  type SafetensorsFile,
  type StoredTensor,
  type TensorSource,
  writeSafetensors,
} from "./safetensors.ts";

export type Config = Readonly<Record<string, unknown>>;

export const weightsFile = "model.safetensors";
export const configFile = "config.json";

/**
 * Writes `folder`/config.json and then `folder`/model.safetensors, each completely or not at all. Creates the folder. `parameters` is
 * `model.namedParameters()`, with PyTorch's names. Resolves to a record of each file. Throws `CheckpointError`.
 */
export async function saveModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: StoredTensor | TensorSource]>,
  config: Config,
): Promise<FileRecord[]> {
  makeFolder(folder);
  const text = new TextEncoder().encode(`${JSON.stringify(config, null, 2)}\n`);
  await atomicWrite(join(folder, configFile), (file) => writeAll(file, text));
  const checksum = new Checksum();
  checksum.add(text);
  const { bytes, crc32 } = checksum;
  // "pt" tells other libraries that names and layouts are PyTorch's. Some of them refuse a file without it.
  return [
    { name: configFile, bytes, crc32 },
    await writeSafetensors(join(folder, weightsFile), parameters, { format: "pt" }),
  ];
}

/** Reads the config.json of a model's folder. Throws `CheckpointError`. */
export async function loadConfig(folder: string): Promise<Config> {
  const path = join(folder, configFile);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new CheckpointError(`Cannot read ${path}: ${reasonOf(error) ?? error}.`, { cause: error });
  }
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config === "object" && config !== null && !Array.isArray(config)) return config as Config;
  } catch {
    // not JSON: reported below
  }
  throw new CheckpointError(`${path} is not a JSON object; copy it again, or use an earlier checkpoint.`);
}

/** The shape and dtype of a parameter, which a stored tensor must fit. */
export interface ParameterShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/**
 * Reads `folder`/model.safetensors into a model's parameters: calls `assign(parameter, stored)` for each, with one tensor in memory at a
 * time. Strict: if the file does not have exactly these names and shapes, or a value is not finite, it assigns nothing and throws a
 * `CheckpointError` that lists all differences. Floating-point dtypes may differ (`assign` converts them); other dtypes may not.
 */
export async function loadWeights<P extends ParameterShape>(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: P]>,
  assign: (parameter: P, stored: StoredTensor) => void | Promise<void>,
): Promise<void> {
  const wanted = new Map(parameters);
  await using file = await openSafetensors(join(folder, weightsFile));
  const problems = differences(wanted, file);
  if (problems.length > 0)
    throw new CheckpointError(
      `${file.path} does not fit this model: ${problems.join("; ")}. Build the model from the ${configFile} next to the file.`,
    );
  for (const name of wanted.keys()) {
    const { dtype, data } = await file.read(name);
    if (!allFinite(dtype, data))
      throw new CheckpointError(`${file.path}: ${name} has values that are not finite; use another checkpoint.`);
  }
  for (const [name, parameter] of wanted) await assign(parameter, await file.read(name));
}

const floating: readonly DType[] = ["f16", "bf16", "f32", "f64"];

function differences(wanted: ReadonlyMap<string, ParameterShape>, { tensors }: SafetensorsFile): string[] {
  const missing = [...wanted.keys()].filter((name) => !tensors.has(name));
  const unexpected = [...tensors.keys()].filter((name) => !wanted.has(name));
  const other: string[] = [];
  for (const [name, parameter] of wanted) {
    const stored = tensors.get(name);
    if (!stored) continue;
    if (showShape(stored.shape) !== showShape(parameter.shape))
      other.push(`${name} is ${showShape(stored.shape)} in the file and ${showShape(parameter.shape)} in the model`);
    else if (
      stored.dtype !== parameter.dtype &&
      !(floating.includes(stored.dtype) && floating.includes(parameter.dtype))
    )
      other.push(`${name} is ${stored.dtype} in the file and ${parameter.dtype} in the model`);
  }
  return [
    ...(missing.length > 0 ? [`missing ${missing.join(", ")}`] : []),
    ...(unexpected.length > 0 ? [`unexpected ${unexpected.join(", ")}`] : []),
    ...other,
  ];
}
