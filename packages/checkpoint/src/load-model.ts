import type { Tensor } from "@terse/tensor";
import { loadWeights } from "./model-folder.ts";

/**
 * Reads `folder`/model.safetensors into a model's parameters (`model.namedParameters()`), in place, on their devices and
 * in their types. Strict as `loadWeights` is: it lists every name that does not fit, and then nothing has changed.
 * Throws `CheckpointError`.
 */
export async function loadModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: Tensor]>,
): Promise<void> {
  const { fromTypedArray, noGrad } = await import("@terse/tensor"); // here, so that reading a file needs no libtorch
  await loadWeights(folder, parameters, (parameter, { dtype, shape, data }) =>
    noGrad(() => {
      using stored = fromTypedArray(data, shape, { dtype });
      parameter.copy_(stored);
    }),
  );
}
