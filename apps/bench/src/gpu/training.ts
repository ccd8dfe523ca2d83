/**
 * A small GPT trained by the same recipe on the CPU, on the GPU, and on the GPU with NCCL, alone in its world: losses
 * on held-out text, and the time of a step. Operators of a GPU round in another order, so losses are near each other.
 */
import { joinWorld, loopback } from "@terse/collectives";
import { readRecipe } from "@terse/train/recipe";
import { trainRank } from "../convergence/training.ts";
import { type Measurement, median } from "../measurement.ts";
import { openGpu } from "./open-gpu.ts";

const [steps, every] = [100, 20];

/** A learning rate for each that suits so few steps. */
const methods: Readonly<Record<string, readonly string[]>> = {
  adamw: ["optimizer.name=adamw", "optimizer.lr=1e-3"],
  "lion-cub": ["optimizer.name=lion-cub", "optimizer.lr=5e-4"],
  "one-bit-lamb": ["optimizer.name=one-bit-lamb", "optimizer.lr=1e-2"],
};

const places = {
  cpu: { device: "cpu", open: async () => loopback(1)[0]! },
  gpu: { device: "cuda", open: async () => loopback(1)[0]! },
  "gpu, nccl": { device: "cuda", open: () => joinWorld({ env: {}, engine: "nccl", timeoutSeconds: 60 }) },
};

export async function* training(): AsyncGenerator<Measurement> {
  if (openGpu("training") === undefined) return;
  for (const [method, changes] of Object.entries(methods))
    for (const [place, { device, open }] of Object.entries(places))
      yield* trained(`${method}, ${place}`, device, open, changes);
}

/** Exported for machines without a GPU. */
export async function* trained(
  name: string,
  device: string,
  open: (typeof places)["gpu, nccl"]["open"],
  changes: readonly string[],
): AsyncGenerator<Measurement> {
  const text = new URL("../../../../docs", import.meta.url).pathname;
  const recipe = readRecipe("gpt-small", [
    "exchange.gradient=null",
    `data.path=${JSON.stringify(text)}`,
    `device=${JSON.stringify(device)}`,
    `steps=${steps}`,
    ...changes,
  ]);
  await using group = await open();
  const run = await trainRank(recipe, group, { every });
  for (const { step, loss } of run.points)
    yield { case: name, metric: `loss_at_${step}`, value: loss, unit: "nats/byte" };
  yield { case: name, metric: "step_ms", value: median(run.steps.map(({ milliseconds }) => milliseconds)), unit: "ms" };
}
