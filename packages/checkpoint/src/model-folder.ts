/**
 * A model in the layout of Hugging Face: model.safetensors with PyTorch's names, config.json beside it. What is saved here
 * opens in PyTorch with `safetensors.torch.load_file`, and the other way round.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { atomicWriteText } from "./atomic-write.ts";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import { type DType, showShape } from "./dtypes.ts";
import {
  openSafetensors,
  type SafetensorsFile,
  type StoredTensor,
  type TensorSource,
  writeSafetensors,
} from "./safetensors.ts";

export type Config = Readonly<Record<string, unknown>>;

const weightsFile = "model.safetensors";
const configFile = "config.json";

/**
 * Writes `folder`/config.json and then `folder`/model.safetensors, each whole or not at all; makes the folder.
 * `parameters` is what `model.namedParameters()` gives, names as PyTorch has them. Throws `CheckpointError`.
 */
export async function saveModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: StoredTensor | TensorSource]>,
  config: Config,
): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw new CheckpointError(`Cannot make the folder ${folder}: ${reasonOf(error) ?? error}.`, { cause: error });
  }
  await atomicWriteText(join(folder, configFile), `${JSON.stringify(config, null, 2)}\n`);
  // "pt" tells other libraries whose names and layouts these are; some refuse a file without it.
  await writeSafetensors(join(folder, weightsFile), parameters, { format: "pt" });
}

/** The config.json of a model's folder. Throws `CheckpointError`. */
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
    // said below
  }
  throw new CheckpointError(`${path} is no JSON object; copy it again, or use an earlier checkpoint.`);
}

/** What a parameter must be, to be loaded from a file. */
export interface ParameterShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/**
 * Reads `folder`/model.safetensors into a model's parameters: `assign(parameter, stored)` once for each, one tensor in
 * memory at a time. Strict: unless the file has exactly these names, in these shapes, nothing is assigned and the error
 * lists all that differ. Floating-point types may differ (`assign` converts); others may not. Throws `CheckpointError`.
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
      `${file.path} does not fit this model: ${problems.join("; ")}. Build the model from the ${configFile} beside the file.`,
    );
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
