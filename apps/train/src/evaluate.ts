import type { Group } from "@terse/collectives";
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import { noGrad, scope } from "@terse/tensor";

/**
 * The model's metrics on up to `windows` rows of held-out data: means over the rows. Each rank computes a share of them, and all
 * ranks get the same values.
 */
export async function evaluate(
  model: Model,
  data: Dataset,
  windows: number,
  group: Group,
): Promise<Readonly<Record<string, number>>> {
  const names = Object.keys(model.metricUnits(data.unit));
  const sums = new Float64Array(names.length + 1); // a sum over rows for each metric, and the number of rows
  model.eval();
  for (using batch of data.validation({ windows, sharded: true }))
    scope(() => {
      const means = noGrad(() => model.metrics(batch));
      for (const [i, name] of names.entries()) sums[i]! += batch.rows * means[name]!.item();
      sums[names.length]! += batch.rows;
    });
  model.train();
  await group.allReduce(sums);
  return Object.fromEntries(names.map((name, i) => [name, sums[i]! / sums[names.length]!]));
}
