/** A run of a recipe as `./terse train` takes it, without saves and journal. */
import type { Group } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { Arena } from "@terse/tensor";
import { buildData, buildModel, buildOptimizer } from "@terse/train/build";
import { evaluate } from "@terse/train/evaluate";
import { measure } from "@terse/train/measure";
import { forwardIn } from "@terse/train/precision";
import type { Recipe } from "@terse/train/recipe";
import { learningRate } from "@terse/train/schedule";
import { takeStep } from "@terse/train/take-step";

/** Rows of held-out text in an evaluation. */
export const windows = 128;

export interface Trained {
  /**
   * Validation loss (text: nats per byte) and, of images, accuracy after so many steps, the same on every rank; from a
   * step on that was refused (a number that is not finite) NaN.
   */
  readonly points: readonly { readonly step: number; readonly loss: number; readonly accuracy?: number }[];
  /** What was measured after some steps, as in metrics.jsonl (docs/metrics.md); with `probeAt`, on rank 0. */
  readonly probes?: readonly { readonly step: number; readonly metrics: Readonly<Record<string, unknown>> }[];
  readonly steps: readonly {
    /** Payload that this rank sent, by closed form. */
    readonly bytes: number;
    readonly milliseconds: number;
  }[];
}

/** A run that another process sent as JSON, which writes NaN as null. */
export function received(run: Trained): Trained {
  return { ...run, points: run.points.map((point) => ({ ...point, loss: point.loss ?? Number.NaN })) };
}

/**
 * Trains this rank for `recipe.steps` steps, or `take` of them, and evaluates every so many on so many rows; 0: never.
 */
export async function trainRank(
  recipe: Recipe,
  group: Group,
  {
    every = 0,
    take = recipe.steps,
    rows = windows,
    probeAt = [],
  }: { every?: number; take?: number; rows?: number | "all"; probeAt?: readonly number[] | undefined } = {},
): Promise<Trained> {
  const model = buildModel(recipe);
  const arena = new Arena(model);
  await using data = await buildData(recipe, model, group);
  await using optimizer = await buildOptimizer(recipe, arena, group);
  const forward = forwardIn(recipe);
  const training = { model, arena, data, optimizer, forward, accumulate: recipe.accumulate };
  const schedule = { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr };
  const points: Trained["points"][number][] = [];
  const steps: { bytes: number; milliseconds: number }[] = [];
  const probes: NonNullable<Trained["probes"]>[number][] = [];
  const evaluated = async (step: number) => {
    if (every === 0 || (step % every !== 0 && step !== take)) return;
    const { loss, accuracy } = await optimizer.shared(() => evaluate(model, data, rows, group, { forward }));
    points.push({ step, loss: loss!, ...(accuracy !== undefined && { accuracy }) });
  };
  for (let step = 0; step < take; step++) {
    await evaluated(step);
    const bytes = optimizer.bytesSent();
    const began = performance.now();
    try {
      await takeStep(training, learningRate(step, schedule));
    } catch (error) {
      if (!(error instanceof StepRefusedError) || every === 0) throw error;
      for (let missing = step + 1; missing <= take; missing++)
        if (missing % every === 0 || missing === take) points.push({ step: missing, loss: Number.NaN });
      return { points, steps };
    }
    steps.push({ bytes, milliseconds: performance.now() - began });
    if (!probeAt.includes(step + 1)) continue;
    const metrics = await measure(group, optimizer, { step, votes: undefined });
    if (metrics) probes.push({ step: step + 1, metrics });
  }
  await evaluated(take);
  return { points, steps, ...(probeAt.length > 0 && { probes }) };
}
