import type { Tensor, DType as TensorDType } from "@terse/tensor";
import type { DType, TypedArray } from "./dtypes.ts";
import { type ForeignNames, forEachFitting } from "./model-folder.ts";

/** How names and shapes in a folder of others fit those of a model. */
export interface ForeignWeights extends ForeignNames {
  /** A stored tensor of another shape, as the model takes it; called where `adapts` says so. */
  adapted?(parameter: string, stored: Tensor): Tensor;
}

/**
 * Reads the weights of a folder into a model's parameters and buffers (`model.stateDict()`), in place; devices and dtypes stay as they are.
 * Strict like `loadWeights`: throws a `CheckpointError` that lists the first ten differences, and then changes nothing.
 */
export async function loadModel(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: Tensor]>,
  foreign: ForeignWeights = {},
): Promise<void> {
  const { fromTypedArray, noGrad, scope } = await import("@terse/tensor"); // imported here, so that reading a file does not load libtorch
  // A stored dtype is the parameter's, or a float that can be converted to it: no other fits.
  const tensorOf = (data: TypedArray, dtype: DType, shape?: readonly number[]) =>
    fromTypedArray(data, shape, { dtype: dtype as TensorDType });
  await forEachFitting(folder, parameters, foreign, async ({ name, parameter, shape, read, parts }) => {
    if (shape.join() === parameter.shape.join())
      for await (const { begin, dtype, data } of parts())
        noGrad(() =>
          scope(() => {
            const part = tensorOf(data, dtype);
            parameter.view(-1).narrow(0, begin, part.length).copy_(part);
          }),
        );
    else {
      const { data, dtype } = await read();
      noGrad(() => scope(() => void parameter.copy_(foreign.adapted!(name, tensorOf(data, dtype, shape)))));
    }
  });
}
