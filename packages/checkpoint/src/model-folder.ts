/**
 * A model in the layout of Hugging Face: a folder with config.json and with weights, in one file or in shards. transformers opens it with
 * `from_pretrained`, PyTorch with `safetensors.torch.load_file`, and what they saved can be opened here.
 */
import { join } from "node:path";
import { allFinite } from "./all-finite.ts";
import { CheckpointError, reasonOf } from "./checkpoint-error.ts";
import { type DType, elementCount, elements, showShape } from "./dtypes.ts";
import type { FileRecord } from "./file-record.ts";
import { float8ToFloat32, isFloat8 } from "./float8.ts";
import { haveSameBytes } from "./have-same-bytes.ts";
import { makeFolder } from "./make-folder.ts";
import { meaningsOf, type NamesInFiles } from "./names-in-files.ts";
import { readRegularText } from "./regular-file.ts";
import {
  partsOf,
  type StoredTensor,
  type TensorInParts,
  type TensorPlace,
  type Tensors,
  type WritableTensor,
} from "./safetensors.ts";
import { openWeights, type Weights, writeJson, writeWeights } from "./weights.ts";

export type Config = Readonly<Record<string, unknown>>;

export const configFile = "config.json";
const mostConfigBytes = 1 << 24; // the names of ImageNet-21k's classes, twice, have 2²¹

/**
 * Writes `folder`/config.json and then the weights, each completely or not at all, also where the folder has older ones. Creates the folder.
 * `parameters` is `model.stateDict()`, with PyTorch's names, and `storedAs` gives those of the files, where they differ. With `shardBytes`,
 * more bytes than these are written as shards and an index. Resolves to a record of each file. Throws `CheckpointError`.
 */
export async function saveModel(
  folder: string,
  parameters: Tensors,
  config: Config,
  options: SaveOptions = {},
): Promise<FileRecord[]> {
  makeFolder(folder);
  const { shardBytes = Number.POSITIVE_INFINITY } = options;
  const tensors = underNames(parameters, options);
  return [await writeJson(folder, configFile, config), ...(await writeWeights(folder, tensors, shardBytes))];
}

export interface SaveOptions {
  readonly shardBytes?: number;
  /** The names of a parameter in the files: one, or several, each of which has as many of its rows, one after the other. */
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

/** Reads the config.json of a model's folder. Throws `CheckpointError`. */
export async function loadConfig(folder: string): Promise<Config> {
  const path = join(folder, configFile);
  let text: string;
  try {
    text = readRegularText(path, mostConfigBytes);
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

/** How a folder of others fits a model. */
export interface ForeignNames extends NamesInFiles {
  /** Whether the files may lack a parameter, which is then left as it is. */
  mayBeAbsent?(parameter: string): boolean;
  /** Whether the model takes a stored tensor of another shape than its parameter has. */
  adapts?(parameter: string, shape: readonly number[]): boolean;
}

/** What a folder has for a parameter, and fits it. */
export interface FittingTensor<P> {
  readonly name: string; // of the parameter
  readonly parameter: P;
  readonly shape: readonly number[]; // in the file
  readonly parts: readonly FittingPart[]; // one, or several with the rows in this order
}

export interface FittingPart {
  readonly shape: readonly number[];
  readonly place: TensorPlace;
  /** Floats of 8 bits are read as f32. */
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
    use: async ({ parameter, name, shape, parts }) => {
      const read: StoredTensor[] = [];
      for (const part of parts) read.push(await part.read());
      await assign(parameter, read.length === 1 ? read[0]! : joined(read, shape), name);
    },
  });
}

/** The same, for a caller who reads the tensors itself: `use` is called when `finite` has held for all. */
export async function forEachFitting<P extends ParameterShape>(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: P]>,
  names: ForeignNames,
  { finite, use }: { finite(part: FittingPart): Promise<boolean>; use(tensor: FittingTensor<P>): Promise<void> },
): Promise<void> {
  const wanted = new Map(parameters);
  await using weights = await openWeights(folder);
  const stored = storedFor(wanted, weights, names);
  const { found } = stored;
  const problems = differences(wanted, stored, names);
  if (problems !== "")
    throw new CheckpointError(
      `${weights.path} does not fit this model: ${problems}. Build the model from the ${configFile} next to the file.`,
    );
  const other = await otherCopy(weights, stored);
  if (other)
    throw new CheckpointError(
      `${weights.path}: ${other.copy} and ${other.original} have other values, and in this model they are one tensor; ${untie}.`,
    );
  const fitting = [...wanted].flatMap(([name, parameter]) => {
    const stored = found.get(name) as readonly StoredPart[] | undefined; // an absent part is a difference
    if (!stored) return [];
    const parts = stored.map(({ stored, shape }) => ({
      stored,
      shape,
      place: weights.placeOf(stored),
      read: async () => asFloat32(await weights.read(stored)),
    }));
    return [{ name, parameter, shape: wholeShape(stored)!, parts }];
  });
  for (const { parts } of fitting)
    for (const part of parts)
      if (!(await finite(part)))
        throw new CheckpointError(
          `${weights.path}: ${part.stored} has values that are not finite; use another checkpoint.`,
        );
  for (const tensor of fitting) await use(tensor);
}

const untie =
  "set tie_word_embeddings to false in its config.json where the model can have both, or remove one of them";

interface StoredPart extends ParameterShape {
  readonly stored: string; // its name in the files
}

/** Of a parameter, what the files have: undefined for a part that they lack. */
type Found = readonly (StoredPart | undefined)[];

/** What files have for a model. */
interface Stored {
  readonly found: ReadonlyMap<string, Found>; // by parameter
  readonly copies: readonly { readonly stored: StoredPart; readonly copyOf: string }[]; // of what was found under another name
  readonly unexpected: readonly StoredPart[];
}

/** A parameter of which the files have a copy alone is that copy. */
function storedFor(
  wanted: ReadonlyMap<string, ParameterShape>,
  { path, tensors }: Weights,
  names: ForeignNames,
): Stored {
  const meaningOf = meaningsOf(wanted.keys(), names);
  const found = new Map<string, (StoredPart | undefined)[]>();
  const [copies, unexpected]: [{ stored: StoredPart; copyOf: string }[], StoredPart[]] = [[], []];
  for (const [name, { shape, dtype }] of tensors) {
    const [stored, meaning] = [{ stored: name, shape, dtype }, meaningOf(name)];
    if (meaning === "unused") continue;
    if (meaning === undefined) unexpected.push(stored);
    else if ("copyOf" in meaning) copies.push({ stored, ...meaning });
    else {
      const { parameter, part, parts } = meaning;
      const all = found.get(parameter) ?? Array.from({ length: parts }, () => undefined);
      const other = all.length === parts ? all[part] : all.find((each) => each !== undefined);
      if (other)
        throw new CheckpointError(
          `${path} has ${parameter} twice, as ${other.stored} and as ${name}; remove one of them.`,
        );
      all[part] = stored;
      found.set(parameter, all);
    }
  }
  const more = copies.filter(({ stored, copyOf }) => {
    const isAlone = wanted.has(copyOf) && !found.has(copyOf);
    if (isAlone) found.set(copyOf, [stored]);
    return !isAlone;
  });
  return { found, copies: more, unexpected };
}

/** The first tensor that stands in the files twice, under two names and with two values. */
async function otherCopy(
  weights: Weights,
  { found, copies }: Stored,
): Promise<{ copy: string; original: string } | undefined> {
  for (const { stored, copyOf } of copies) {
    const original = found.get(copyOf)?.[0]?.stored;
    if (original !== undefined && !(await haveSameBytes(weights.placeOf(stored.stored), weights.placeOf(original))))
      return { copy: stored.stored, original };
  }
  return undefined;
}

/**
 * The first of a tied model's copies that the files have with other values than the parameter, if any: the weights are those of a model
 * that is not tied. Throws `CheckpointError`.
 */
export async function differingCopy(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: ParameterShape]>,
  names: ForeignNames,
): Promise<string | undefined> {
  await using weights = await openWeights(folder);
  return (await otherCopy(weights, storedFor(new Map(parameters), weights, names)))?.copy;
}

/** How the weights of a folder differ from a model's, as `loadWeights` says it; "" where they fit. Reads no values. Throws `CheckpointError`. */
export async function misfits(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: ParameterShape]>,
  names: ForeignNames = {},
): Promise<string> {
  await using weights = await openWeights(folder);
  const wanted = new Map(parameters);
  return differences(wanted, storedFor(wanted, weights, names), names);
}

/** The number of elements of all tensors in a folder. Throws `CheckpointError`. */
export async function storedElements(folder: string): Promise<number> {
  await using weights = await openWeights(folder);
  return [...weights.tensors.values()].reduce((sum, { shape }) => sum + elementCount(shape), 0);
}

/** The shape of parts whose rows stand one after the other; undefined where they do not fit each other. */
function wholeShape(parts: readonly ParameterShape[]): readonly number[] | undefined {
  const [first] = parts as [ParameterShape];
  if (parts.length === 1) return first.shape;
  const alike = ({ shape }: ParameterShape) =>
    shape.length > 0 && shape.slice(1).join() === first.shape.slice(1).join();
  return parts.every(alike)
    ? [parts.reduce((rows, { shape }) => rows + shape[0]!, 0), ...first.shape.slice(1)]
    : undefined;
}

/** One tensor with the rows of all. */
function joined(parts: readonly StoredTensor[], shape: readonly number[]): StoredTensor {
  const { dtype } = parts[0]!;
  const bytes = new Uint8Array(parts.reduce((sum, { data }) => sum + data.byteLength, 0));
  let at = 0;
  for (const { data } of parts) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return { dtype, shape, data: elements[dtype].array(bytes.buffer) };
}

/** A tensor of 8-bit floats as f32; any other as it is. */
const asFloat32 = (stored: StoredTensor): StoredTensor =>
  isFloat8(stored.dtype)
    ? { ...stored, dtype: "f32", data: float8ToFloat32(stored.dtype, stored.data as Uint8Array) }
    : stored;

const isFloating = (dtype: DType) => isFloat8(dtype) || ["f16", "bf16", "f32", "f64"].includes(dtype);
const listed = 4; // differences of each kind in a message

function differences(
  wanted: ReadonlyMap<string, ParameterShape>,
  { found, unexpected }: Stored,
  names: ForeignNames,
): string {
  const [missing, other]: [string[], string[]] = [[], []];
  for (const [name, parameter] of wanted) {
    const parts = found.get(name);
    if (!parts) {
      if (!names.mayBeAbsent?.(name)) missing.push(name);
      continue;
    }
    const stored = parts.filter((part) => part !== undefined);
    if (stored.length < parts.length) {
      missing.push(`${name} (${stored.length} of its ${parts.length} parts are there)`);
      continue;
    }
    const shape = wholeShape(stored);
    const types = [...new Set(stored.map(({ dtype }) => dtype))];
    const [dtype] = types as [DType];
    if (!shape || (showShape(shape) !== showShape(parameter.shape) && !names.adapts?.(name, shape))) {
      const shapes = shape ? [shape] : stored.map((part) => part.shape);
      other.push(
        `${name} is ${shapes.map(showShape).join(" and ")} in the file and ${showShape(parameter.shape)} in the model`,
      );
    } else if (types.length > 1 || (dtype !== parameter.dtype && !(isFloating(dtype) && isFloating(parameter.dtype))))
      other.push(`${name} is ${types.join(" and ")} in the file and ${parameter.dtype} in the model`);
  }
  const near = guess(missing.slice(0, listed), wanted, unexpected);
  return [
    ...few("missing ", missing, ", "),
    ...few(
      "unexpected ",
      unexpected.map(({ stored }) => shortName(stored)),
      ", ",
    ),
    ...near,
    ...few("", other, "; "),
  ].join("; ");
}

/** The first ones, and how many more there are; nothing where there are none. */
function few(label: string, problems: readonly string[], separator: string): string[] {
  if (problems.length === 0) return [];
  const more = problems.length > listed ? [`and ${problems.length - listed} more`] : [];
  return [label + [...problems.slice(0, listed), ...more].join(separator)];
}

const shortName = (name: string) => (name.length > 120 ? `${name.slice(0, 117)}…` : name);

/** Which unexpected tensor may be the missing one that is most similar to any: of the same shape, its name ends in the same words. */
function guess(
  missing: readonly string[],
  wanted: ReadonlyMap<string, ParameterShape>,
  unexpected: readonly StoredPart[],
): string[] {
  let [best, most] = ["", 0];
  for (const name of missing) {
    const words = name.split(".").reverse();
    const shape = wanted.get(name)?.shape.join();
    for (const { stored, shape: theirs } of unexpected) {
      if (theirs.join() !== shape) continue;
      const others = stored.split(".").reverse();
      const first = words.findIndex((word, i) => word !== others[i]);
      const alike = first < 0 ? words.length : first;
      if (alike > most) [best, most] = [`${name} may be ${shortName(stored)} there`, alike];
    }
  }
  return most > 0 ? [best] : [];
}
