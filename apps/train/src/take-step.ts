/**
 * A training step: forward and backward over the micro-batches, then the optimizer's step, which all ranks take or
 * none.
 */
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import type { StepReport, TrainingOptimizer } from "@terse/optimizers";
import { type Arena, scope } from "@terse/tensor";
import { StepMeter } from "./measures/step-meter.ts";
import type { Forward } from "./precision.ts";

export interface Training {
  readonly model: Model;
  readonly arena: Arena;
  readonly data: Pick<Dataset, "next">;
  readonly optimizer: TrainingOptimizer;
  readonly forward: Forward;
  readonly accumulate: number; // micro-batches
  readonly meter?: StepMeter; // times the parts of the step
}

/**
 * Resolves to this rank's mean loss over its micro-batches, and the costs of the step. Where micro-batches predict
 * different numbers of tokens, they weigh by them, so that the mean over ranks is that over all tokens of the step.
 * Throws as `TrainingOptimizer.step` does.
 */
export function takeStep(
  { model, arena, data, optimizer, forward, accumulate, meter = new StepMeter() }: Training,
  lr: number,
): Promise<StepReport & { loss: number }> {
  // the scope's end frees every tensor that was made in it and not kept
  return scope(async () => {
    arena.replaceGradients();
    let loss = 0;
    for (const batch of await meter.time("data", () => data.next(accumulate)))
      await scope(async () => {
        // one micro-batch's activations at a time
        const share = await meter.time("forward", () => {
          const share = forward(() => model.loss(batch)).div(accumulate / batch.share);
          loss += share.item();
          return share;
        });
        if (batch.last) await optimizer.begin({ lr, loss }); // each bucket leaves as soon as backward completes it
        await meter.time("backward", () => share.backward());
      });
    return { loss, ...(await optimizer.step({ lr, loss })) };
  });
}
