import type { Recipe } from "./recipe.ts";

/**
 * The learning rate of step t, from 0: linear warm-up, then a cosine down to `final` of the top at the last step.
 * Loshchilov and Hutter 2017, equation 5 (one cycle), https://arxiv.org/abs/1608.03983
 */
export function learningRate(t: number, { steps, optimizer, schedule }: Recipe): number {
  const { lr } = optimizer;
  const { name, warmup, final } = schedule;
  if (t < warmup) return (lr * (t + 1)) / warmup;
  if (name === "constant" || steps <= warmup + 1) return lr;
  const progress = (t - warmup) / (steps - 1 - warmup);
  return lr * (final + ((1 - final) * (1 + Math.cos(Math.PI * Math.min(1, progress)))) / 2);
}
