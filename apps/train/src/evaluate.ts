import type { Group } from "@terse/collectives";
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import { noGrad, scope } from "@terse/tensor";
import { broadcastTensors } from "./broadcast-tensors.ts";
import { type Forward, inF32 } from "./precision.ts";
import type { Recipe } from "./recipe.ts";

interface Options {
  readonly forward?: Forward;
  /** Is called after each batch of this rank. */
  readonly progress?: (done: number, of: number) => void;
  /** Whether this rank has been asked to end. Then all ranks throw `EvaluationStopped`. */
  readonly isStopped?: () => boolean;
}

/** A signal has ended an evaluation before its last batch: the metrics are not known. */
export class EvaluationStopped extends Error {
  override readonly name = "EvaluationStopped";
}

/**
 * The model's metrics on up to `windows` rows of held-out data: means over the rows, or over what they predict where
 * rows predict different numbers of tokens. Each rank computes some of the batches. The batches, and the order in which
 * their values are added, are the same for any number of ranks: so are the bits of the metrics, on processors of one
 * kind. Before that, buffers such as the running statistics of batch normalisation become those of rank 0, which are
 * also what saves contain.
 */
export async function evaluate(
  model: Model,
  data: Dataset,
  windows: Recipe["evaluate"]["windows"],
  group: Group,
  { forward = inF32, progress = () => {}, isStopped = () => false }: Options = {},
): Promise<Readonly<Record<string, number>>> {
  const names = Object.keys(model.metricUnits(data.unit));
  await broadcastTensors(
    model.namedBuffers().map(([, buffer]) => buffer),
    0,
    group,
  );
  const rows = windows === "all" ? Number.POSITIVE_INFINITY : windows;
  const batches = data.validationBatches(rows);
  const [width, mine] = [names.length + 1, Math.ceil((batches - group.rank) / group.size)];
  const values = new Float64Array(batches * width + 1); // of each batch its weight, and weighted metrics; ranks that stop
  model.eval();
  let at = group.rank;
  for await (using batch of data.validation({ windows: rows, sharded: true })) {
    if (isStopped()) {
      values[batches * width] = 1;
      break;
    }
    scope(() => {
      const means = noGrad(() => forward(() => model.metrics(batch)));
      values.set([batch.weight, ...names.map((name) => batch.weight * means[name]!.item())], at * width);
    });
    at += group.size;
    progress((at - group.rank) / group.size, mine);
  }
  model.train();
  await group.allReduce(values); // one rank has each batch, and the others zeros
  if (values[batches * width]! > 0) throw new EvaluationStopped("the evaluation was stopped");
  const sums = new Float64Array(width);
  for (const [i, value] of values.subarray(0, -1).entries()) sums[i % width]! += value;
  return Object.fromEntries(names.map((name, i) => [name, sums[i + 1]! / sums[0]!]));
}
