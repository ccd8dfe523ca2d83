export interface Schedule {
  readonly steps: number;
  readonly lr: number; // the highest
  readonly name?: "cosine" | "constant";
  readonly warmup: number; // steps
  readonly final: number; // of lr, at the last step
}

/**
 * The learning rate of step t, from 0: linear warm-up to `lr`, then a cosine down to `final` · `lr` at the last step. A warm-up longer
 * than half the run is cut to half of it, so that a short run reaches `lr` too.
 * Loshchilov and Hutter 2017, equation 5 (one cycle), https://arxiv.org/abs/1608.03983
 */
export function learningRate(t: number, { steps, lr, name = "cosine", warmup: wanted, final }: Schedule): number {
  const warmup = Math.min(wanted, Math.floor(steps / 2));
  if (t < warmup) return (lr * (t + 1)) / warmup;
  if (name === "constant" || steps <= warmup + 1) return lr;
  const progress = (t - warmup) / (steps - 1 - warmup);
  return lr * (final + ((1 - final) * (1 + Math.cos(Math.PI * Math.min(1, progress)))) / 2);
}
