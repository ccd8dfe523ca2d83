import { statSync } from "node:fs";
import type { Tensor, DType as TensorDType } from "@terse/tensor";
import { allFinite } from "./all-finite.ts";
import type { DType } from "./dtypes.ts";
import { type FittingPart, forEachFitting } from "./load-weights.ts";
import type { ForeignNames } from "./stored-for-model.ts";

/** How the names and shapes in another library's folder fit those of a model. */
export interface ForeignWeights extends ForeignNames {
  /** A stored tensor of another shape, as the model takes it; called where `adapts` says so. */
  adapted?(parameter: string, stored: Tensor): Tensor;
}

/** Dtypes whose bytes in a file are those in libtorch's memory. */
const mappable: readonly DType[] = ["f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8"];
const floats: readonly DType[] = ["f32", "f64", "f16", "bf16"];

/**
 * Reads the weights of a folder into a model's parameters and buffers (`model.stateDict()`), in place; devices and
 * dtypes stay as they are. Strict like `loadWeights`: throws a `CheckpointError` that lists the first ten differences,
 * and then changes nothing. The files are mapped into memory, so they must not be cut short meanwhile.
 */
export async function loadModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: Tensor]>,
  foreign: ForeignWeights = {},
): Promise<void> {
  // Imported here, so that reading a file does not load libtorch
  const { call, cat, fromTypedArray, noGrad, scope } = await import("@terse/tensor");

  /** Each file is mapped once: looking at the values brings the pages in, and the copy finds them there. */
  const files = new Map<string, Tensor>();
  const fileAt = (path: string): Tensor => {
    const known = files.get(path);
    if (known) return known;
    const file: Tensor = call("aten::from_file", path, false, statSync(path).size, "u8");
    files.set(path, file.keep());
    return file;
  };
  /** The elements in the page cache, without a copy of them: a vector. */
  const mapped = ({ path, begin, bytes, dtype }: FittingPart["place"]): Tensor => {
    const raw = fileAt(path).narrow(0, begin, bytes);
    // Libtorch reads no elements across their alignment
    return call("aten::view.dtype", begin % 8 === 0 ? raw : raw.clone(), dtype);
  };
  const isMappable = ({ bytes, dtype }: FittingPart["place"]) => bytes > 0 && mappable.includes(dtype);
  const stored = async (part: FittingPart): Promise<Tensor> => {
    if (isMappable(part.place)) return mapped(part.place).view(part.shape);
    const { data, dtype } = await part.read();
    // A stored dtype is the parameter's, or a float that can be converted to it: no other fits.
    return fromTypedArray(data, part.shape, { dtype: dtype as TensorDType });
  };

  try {
    await forEachFitting(folder, parameters, foreign, {
      async finite(part) {
        if (!isMappable(part.place)) {
          const { dtype, data } = await part.read();
          return allFinite(dtype, data);
        }
        if (!floats.includes(part.place.dtype)) return true;
        return scope((): boolean => call("terse::all_finite", mapped(part.place)));
      },
      async use(tensor) {
        const { name, parameter, shape, parts } = tensor;
        await scope(async () => {
          const tensors: Tensor[] = [];
          for (const part of parts) tensors.push(await stored(part));
          const value = tensors.length === 1 ? tensors[0]! : cat(tensors);
          const fits = shape.join() === parameter.shape.join();
          noGrad(() => void parameter.copy_(fits ? value : foreign.adapted!(name, value)));
        });
      },
    });
  } finally {
    for (const file of files.values()) file.dispose();
  }
}
