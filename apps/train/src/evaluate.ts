import type { Group } from "@terse/collectives";
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import { noGrad, scope } from "@terse/tensor";
import { broadcastTensors } from "./broadcast-tensors.ts";
import { type Forward, inF32 } from "./precision.ts";

/**
 * The model's metrics on up to `windows` rows of held-out data: means over the rows, or over what they predict where
 * rows predict different numbers of tokens. Each rank computes a share of
 * them, and all ranks get the same values. Before that, buffers such as the running statistics of batch normalisation
 * become those of rank 0, which are also what saves contain.
 */
export async function evaluate(
  model: Model,
  data: Dataset,
  windows: number,
  group: Group,
  forward: Forward = inF32,
): Promise<Readonly<Record<string, number>>> {
  const names = Object.keys(model.metricUnits(data.unit));
  const sums = new Float64Array(names.length + 1); // a weighted sum for each metric, and the sum of the weights
  await broadcastTensors(
    model.namedBuffers().map(([, buffer]) => buffer),
    0,
    group,
  );
  model.eval();
  for await (using batch of data.validation({ windows, sharded: true }))
    scope(() => {
      const means = noGrad(() => forward(() => model.metrics(batch)));
      for (const [i, name] of names.entries()) sums[i]! += batch.weight * means[name]!.item();
      sums[names.length]! += batch.weight;
    });
  model.train();
  await group.allReduce(sums);
  return Object.fromEntries(names.map((name, i) => [name, sums[i]! / sums[names.length]!]));
}
