/**
 * A model in the layout of Hugging Face: a folder with config.json and with weights, in one file or in shards. transformers opens it with
 * `from_pretrained`, PyTorch with `safetensors.torch.load_file`, and what they saved can be opened here.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { allFinite } from "./all-finite.ts";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import { type DType, elementCount, showShape } from "./dtypes.ts";
import type { FileRecord } from "./file-record.ts";
import { float8ToFloat32, isFloat8 } from "./float8.ts";
import { makeFolder } from "./make-folder.ts";
import type { StoredTensor, TensorPlace, TensorSource } from "./safetensors.ts";
import { openWeights, type Weights, writeJson, writeWeights } from "./weights.ts";

export type Config = Readonly<Record<string, unknown>>;

export const configFile = "config.json";

/**
 * Writes `folder`/config.json and then the weights, each completely or not at all, also where the folder has older ones. Creates the folder.
 * `parameters` is `model.stateDict()`, with PyTorch's names. With `shardBytes`, more bytes than these are written as shards and an index.
 * Resolves to a record of each file. Throws `CheckpointError`.
 */
export async function saveModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: StoredTensor | TensorSource]>,
  config: Config,
  { shardBytes = Number.POSITIVE_INFINITY }: { shardBytes?: number } = {},
): Promise<FileRecord[]> {
  makeFolder(folder);
  return [await writeJson(folder, configFile, config), ...(await writeWeights(folder, parameters, shardBytes))];
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

/** How names in a folder of others fit those of a model. */
export interface ForeignNames {
  /** The model's name for a tensor that the files call `stored`; undefined for one that it does not take. */
  parameterOf?(stored: string): string | undefined;
  /** Whether the files may lack a parameter, which is then left as it is. */
  mayBeAbsent?(parameter: string): boolean;
  /** Whether the model takes a stored tensor of another shape than its parameter has. */
  adapts?(parameter: string, shape: readonly number[]): boolean;
}

/** A tensor of a folder that fits a parameter. Floats of 8 bits are read as f32. */
export interface FittingTensor<P> {
  readonly name: string; // of the parameter
  readonly parameter: P;
  readonly shape: readonly number[]; // in the file
  readonly place: TensorPlace;
  read(): Promise<StoredTensor>;
}

/**
 * Reads the weights of a folder into a model's parameters: calls `assign(parameter, stored, name)` for each, with one tensor in memory at a
 * time. Strict: if the files do not have exactly these names and shapes, or a value is not finite, it assigns nothing and throws a
 * `CheckpointError` that lists the first ten differences. Floating-point dtypes may differ (`assign` converts them, and gets f32 for floats
 * of 8 bits); other dtypes may not.
 */
export async function loadWeights<P extends ParameterShape>(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: P]>,
  assign: (parameter: P, stored: StoredTensor, name: string) => void | Promise<void>,
  names: ForeignNames = {},
): Promise<void> {
  await forEachFitting(folder, parameters, names, {
    finite: async ({ read }) => {
      const { dtype, data } = await read();
      return allFinite(dtype, data);
    },
    use: async ({ parameter, name, read }) => assign(parameter, await read(), name),
  });
}

/** The same, for a caller who reads the tensors itself: `use` is called when `finite` has held for all. */
export async function forEachFitting<P extends ParameterShape>(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: P]>,
  names: ForeignNames,
  { finite, use }: { finite(tensor: FittingTensor<P>): Promise<boolean>; use(tensor: FittingTensor<P>): Promise<void> },
): Promise<void> {
  const wanted = new Map(parameters);
  await using weights = await openWeights(folder);
  const found = byParameter(weights, names);
  const problems = differences(wanted, found, names);
  if (problems !== "")
    throw new CheckpointError(
      `${weights.path} does not fit this model: ${problems}. Build the model from the ${configFile} next to the file.`,
    );
  const fitting = [...wanted].flatMap(([name, parameter]): (FittingTensor<P> & { stored: string })[] => {
    const stored = found.get(name);
    if (!stored) return [];
    const place = weights.placeOf(stored.name);
    const read = async () => asFloat32(await weights.read(stored.name));
    return [{ name, parameter, shape: stored.shape, place, read, stored: stored.name }];
  });
  for (const tensor of fitting)
    if (!(await finite(tensor)))
      throw new CheckpointError(
        `${weights.path}: ${tensor.stored} has values that are not finite; use another checkpoint.`,
      );
  for (const tensor of fitting) await use(tensor);
}

interface FoundTensor extends ParameterShape {
  readonly name: string; // in the files
}

/** The tensors that a model takes, by its names for them. */
function byParameter({ path, tensors }: Weights, names: ForeignNames): Map<string, FoundTensor> {
  const found = new Map<string, FoundTensor>();
  for (const [name, { shape, dtype }] of tensors) {
    const parameter = names.parameterOf ? names.parameterOf(name) : name;
    if (parameter === undefined) continue;
    const other = found.get(parameter);
    if (other)
      throw new CheckpointError(`${path} has ${parameter} twice, as ${other.name} and as ${name}; remove one of them.`);
    found.set(parameter, { name, shape, dtype });
  }
  return found;
}

/** How the weights of a folder differ from a model's, as `loadWeights` says it; "" where they fit. Reads no values. Throws `CheckpointError`. */
export async function misfits(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: ParameterShape]>,
  names: ForeignNames = {},
): Promise<string> {
  await using weights = await openWeights(folder);
  return differences(new Map(parameters), byParameter(weights, names), names);
}

/** The number of elements of the tensors in a folder that a model takes. Throws `CheckpointError`. */
export async function storedElements(folder: string, names: ForeignNames = {}): Promise<number> {
  await using weights = await openWeights(folder);
  return [...byParameter(weights, names).values()].reduce((sum, { shape }) => sum + elementCount(shape), 0);
}

/** A tensor of 8-bit floats as f32; any other as it is. */
const asFloat32 = (stored: StoredTensor): StoredTensor =>
  isFloat8(stored.dtype)
    ? { ...stored, dtype: "f32", data: float8ToFloat32(stored.dtype, stored.data as Uint8Array) }
    : stored;

const isFloating = (dtype: DType) => isFloat8(dtype) || ["f16", "bf16", "f32", "f64"].includes(dtype);
const listed = 10; // differences in a message

function differences(
  wanted: ReadonlyMap<string, ParameterShape>,
  found: ReadonlyMap<string, FoundTensor>,
  names: ForeignNames,
): string {
  const missing = [...wanted.keys()].filter((name) => !found.has(name) && !names.mayBeAbsent?.(name));
  const unexpected = [...found].flatMap(([parameter, { name }]) => (wanted.has(parameter) ? [] : [name]));
  const other: string[] = [];
  for (const [name, parameter] of wanted) {
    const stored = found.get(name);
    if (!stored) continue;
    if (showShape(stored.shape) !== showShape(parameter.shape) && !names.adapts?.(name, stored.shape))
      other.push(`${name} is ${showShape(stored.shape)} in the file and ${showShape(parameter.shape)} in the model`);
    else if (stored.dtype !== parameter.dtype && !(isFloating(stored.dtype) && isFloating(parameter.dtype)))
      other.push(`${name} is ${stored.dtype} in the file and ${parameter.dtype} in the model`);
  }
  let left = listed;
  const first = (problems: readonly string[]) => {
    const shown = problems.slice(0, left);
    left -= shown.length;
    return shown;
  };
  const [absent, extra, rest] = [first(missing), first(unexpected), first(other)];
  const more = missing.length + unexpected.length + other.length - listed;
  return [
    ...(absent.length > 0 ? [`missing ${absent.join(", ")}`] : []),
    ...(extra.length > 0 ? [`unexpected ${extra.join(", ")}`] : []),
    ...rest,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("; ");
}
