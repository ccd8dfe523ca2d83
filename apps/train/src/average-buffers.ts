import type { Group } from "@terse/collectives";
import type { Model } from "@terse/models";
import { fromTypedArray, noGrad, type Tensor } from "@terse/tensor";
import { broadcastTensors } from "./broadcast-tensors.ts";

/**
 * Sets buffers, such as the running means and variances of batch normalisation, to their means over the ranks: the same
 * bits on every rank. Integer buffers, such as the number of batches, become those of rank 0.
 *
 * The mean of the ranks' variances leaves out how far the ranks' means are apart. PyTorch has two other ways.
 * SyncBatchNorm normalises with the statistics of all ranks' rows, and sends them in every forward and backward pass.
 * DistributedDataParallel's broadcast_buffers gives every rank the statistics of rank 0 before every forward pass, so
 * those of the other ranks' rows are lost.
 */
export async function averageBuffers(model: Model, group: Group): Promise<void> {
  const buffers = model.namedBuffers().map(([, buffer]) => buffer);
  const floats = buffers.filter(({ dtype }) => dtype === "f32");
  await broadcastTensors(
    buffers.filter(({ dtype }) => dtype !== "f32"),
    0,
    group,
  );
  const sums = Float64Array.from((await Promise.all(floats.map(valuesOf))).flatMap((values) => [...values]));
  await group.allReduce(sums);
  let begin = 0;
  noGrad(() => {
    for (const buffer of floats) {
      const mean = Float32Array.from(sums.subarray(begin, begin + buffer.length), (sum) => sum / group.size);
      begin += buffer.length;
      using stored = fromTypedArray(mean, buffer.shape);
      buffer.copy_(stored);
    }
  });
}

const valuesOf = async (tensor: Tensor) => (await tensor.toTypedArray()) as Float32Array;
