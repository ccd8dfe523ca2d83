import type { Tensor } from "@terse/tensor";
import { loadWeights } from "./model-folder.ts";

/**
 * Reads `folder`/model.safetensors into a model's parameters (`model.namedParameters()`), in place; devices and dtypes stay as they are.
 * Strict like `loadWeights`: throws a `CheckpointError` that lists every name that does not fit, and then changes nothing.
 */
export async function loadModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: Tensor]>,
): Promise<void> {
  const { fromTypedArray, noGrad } = await import("@terse/tensor"); // imported here, so that reading a file does not load libtorch
  await loadWeights(folder, parameters, (parameter, { dtype, shape, data }) =>
    noGrad(() => {
      using stored = fromTypedArray(data, shape, { dtype });
      parameter.copy_(stored);
    }),
  );
}
