/** What is recorded of runs: losses on held-out text, and what the steps send. */
import type { Measurement } from "../measurement.ts";
import type { Settings } from "./search.ts";
import { countKinds } from "./times.ts";
import type { Trained } from "./training.ts";

const unit = "nats/byte";

/**
 * The runs of a method, one for each seed. `loss_at_STEP` is the validation loss; the last of them is also
 * `validation_loss`.
 */
export function* lossesOf(
  name: string,
  seeds: readonly number[],
  { chosen, runs }: { readonly chosen: Settings; readonly runs: readonly Trained[] },
): Generator<Measurement> {
  for (const [i, run] of runs.entries()) {
    const inCase = { case: `${name}, seed ${seeds[i]}` };
    yield { ...inCase, metric: "validation_loss", value: run.points.at(-1)!.loss, unit };
    for (const [setting, value] of Object.entries(chosen)) yield { ...inCase, metric: setting, value, unit: "" };
    yield* lossesAt(inCase.case, run);
  }
  yield* kinds(name, runs[0]!);
}

export function* lossesAt(name: string, { points }: Trained): Generator<Measurement> {
  for (const { step, loss } of points) yield { case: name, metric: `loss_at_${step}`, value: loss, unit };
}

/** Bytes of a step, and how many steps of each kind there were until each evaluation. PyTorch's are of one kind. */
export function* kinds(name: string, { steps, points }: Trained): Generator<Measurement> {
  const sent = steps.map(({ bytes }) => bytes);
  yield {
    case: name,
    metric: "sent_per_step",
    value: sent.reduce((sum, bytes) => sum + bytes, 0) / sent.length,
    unit: "B",
  };
  for (const { step } of points.slice(1))
    for (const [bytes, count] of countKinds(sent.slice(0, step)))
      yield { case: name, metric: `steps_of_${bytes}_until_${step}`, value: count, unit: "" };
}
