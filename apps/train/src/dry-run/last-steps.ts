import type { TrainingOptimizer } from "@terse/optimizers";
import type { Recipe } from "../recipe.ts";

const stepsAtEnd = 16; // the most between two synchronisations of 0/1 Adam

/**
 * Some of the last steps of a run, in which warm-ups have ended: one for each number of bytes, because steps that
 * synchronise take turns with others. With local steps they are those in which each parameter is shared once.
 */
export function lastSteps(
  optimizer: TrainingOptimizer,
  { steps, local }: Pick<Recipe, "steps" | "local">,
): { step: number; bytes: number; share: number }[] {
  const every = local?.syncEvery ?? stepsAtEnd;
  const end = local && steps > every ? steps - (steps % every) : steps; // without the round that ends a run sooner
  const last = Array.from({ length: Math.min(steps, every) }, (_, i) => end - 1 - i);
  return [...Map.groupBy(last, (step) => optimizer.bytesSent(step))].map(([bytes, [step, ...others]]) => ({
    step: step!,
    bytes,
    share: (1 + others.length) / last.length,
  }));
}

/** The mean over steps that stand for all. */
export const meanOf = <S extends { share: number }>(steps: readonly S[], value: (step: S) => number): number =>
  steps.reduce((sum, step) => sum + step.share * value(step), 0);
