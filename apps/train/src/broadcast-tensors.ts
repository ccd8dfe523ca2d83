import type { Group } from "@terse/collectives";
import { fromTypedArray, noGrad, type Tensor, type TypedArray } from "@terse/tensor";

/**
 * Writes the values of rank `from` into these tensors on every other rank. All ranks call it with the same shapes and
 * dtypes.
 */
export async function broadcastTensors(tensors: Iterable<Tensor>, from: number, group: Group): Promise<void> {
  for (const tensor of tensors) {
    const values = await tensor.toTypedArray();
    await group.broadcast(values, from);
    if (group.rank === from) continue;
    noGrad(() => {
      using stored = fromTypedArray(values as TypedArray, tensor.shape, { dtype: tensor.dtype });
      tensor.copy_(stored);
    });
  }
}
