import { statSync } from "node:fs";
import type { Tensor, DType as TensorDType } from "@terse/tensor";
import { allFinite } from "./all-finite.ts";
import type { DType } from "./dtypes.ts";
import { type FittingTensor, type ForeignNames, forEachFitting } from "./model-folder.ts";

/** How names and shapes in a folder of others fit those of a model. */
export interface ForeignWeights extends ForeignNames {
  /** A stored tensor of another shape, as the model takes it; called where `adapts` says so. */
  adapted?(parameter: string, stored: Tensor): Tensor;
}

/** Dtypes whose bytes in a file are those in libtorch's memory. */
const mappable: readonly DType[] = ["f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8"];
const floats: readonly DType[] = ["f32", "f64", "f16", "bf16"];

/**
 * Reads the weights of a folder into a model's parameters and buffers (`model.stateDict()`), in place; devices and dtypes stay as they are.
 * Strict like `loadWeights`: throws a `CheckpointError` that lists the first ten differences, and then changes nothing. The files are
 * mapped into memory, so they must not be cut short meanwhile.
 */
export async function loadModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: Tensor]>,
  foreign: ForeignWeights = {},
): Promise<void> {
  const { call, fromTypedArray, noGrad, scope } = await import("@terse/tensor"); // imported here, so that reading a file does not load libtorch

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
  const mapped = ({ path, begin, bytes, dtype }: FittingTensor<Tensor>["place"]): Tensor => {
    const raw = fileAt(path).narrow(0, begin, bytes);
    return call("aten::view.dtype", begin % 8 === 0 ? raw : raw.clone(), dtype); // libtorch reads no elements across their alignment
  };
  const isMappable = ({ bytes, dtype }: FittingTensor<Tensor>["place"]) => bytes > 0 && mappable.includes(dtype);
  const stored = async (tensor: FittingTensor<Tensor>): Promise<Tensor> => {
    if (isMappable(tensor.place)) return mapped(tensor.place).view(tensor.shape);
    const { data, dtype } = await tensor.read();
    // A stored dtype is the parameter's, or a float that can be converted to it: no other fits.
    return fromTypedArray(data, tensor.shape, { dtype: dtype as TensorDType });
  };

  try {
    await forEachFitting(folder, parameters, foreign, {
      async finite(tensor) {
        if (!isMappable(tensor.place)) {
          const { dtype, data } = await tensor.read();
          return allFinite(dtype, data);
        }
        if (!floats.includes(tensor.place.dtype)) return true;
        return scope((): boolean => call("terse::all_finite", mapped(tensor.place)));
      },
      async use(tensor) {
        const { name, parameter, shape } = tensor;
        await scope(async () => {
          const value = await stored(tensor);
          const fits = shape.join() === parameter.shape.join();
          noGrad(() => void parameter.copy_(fits ? value : foreign.adapted!(name, value)));
        });
      },
    });
  } finally {
    for (const file of files.values()) file.dispose();
  }
}
