import { allFinite } from "./all-finite.ts";
import { CheckpointError } from "./checkpoint-error.ts";
import { configFile } from "./config-file.ts";
import { elements } from "./dtypes.ts";
import { float8ToFloat32, isFloat8 } from "./float8.ts";
import { differences } from "./misfits.ts";
import type { StoredTensor, TensorPlace } from "./safetensors.ts";
import {
  type ForeignNames,
  otherCopy,
  type ParameterShape,
  type StoredPart,
  storedFor,
  wholeShape,
} from "./stored-for-model.ts";
import { openWeights } from "./weights.ts";
import { pairsOf } from "./written-tensors.ts";

/** The stored tensors of one parameter, when they fit it. */
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
 * Reads the weights of a folder into a model's parameters: calls `assign(parameter, stored, name)` for each, with one
 * tensor in memory at a time. Strict: if the files do not have exactly these names and shapes, or a value is not
 * finite, it assigns nothing and throws a `CheckpointError` that lists the first ten differences. Floating-point dtypes
 * may differ (`assign` converts them, and gets f32 for floats of 8 bits); other dtypes may not.
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

/**
 * Strict as `loadWeights`, for a caller that reads the tensors itself: `use` is called after `finite` has returned true
 * for all.
 */
export async function forEachFitting<P extends ParameterShape>(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: P]>,
  names: ForeignNames,
  { finite, use }: { finite(part: FittingPart): Promise<boolean>; use(tensor: FittingTensor<P>): Promise<void> },
): Promise<void> {
  const wanted = new Map(pairsOf(`Cannot load ${folder}`, parameters));
  await using weights = await openWeights(folder);
  const stored = storedFor(wanted, weights, names);
  const { found } = stored;
  const problems = differences(wanted, stored, names);
  if (problems !== "")
    throw new CheckpointError(
      `${weights.path} does not fit this model: ${problems}. Build the model from the ${configFile} next to the file; if it is, the two do not belong together, or the model's head is missing: use other weights.`,
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
