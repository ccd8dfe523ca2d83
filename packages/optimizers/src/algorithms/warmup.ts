/**
 * The warm-up of 1-bit Adam and 1-bit LAMB, whose length is given or found: with `auto` a vector (a layer, or with one scale the model) ends it
 * when its variance has changed by less than 4 % within 1/(1 − β₂) steps. Tang et al. 2021, https://arxiv.org/abs/2102.02888, compare 1-norms of
 * the variance; here they are 2-norms. The papers warm up for 15 to 25 % of a run.
 */
import { sumOfSquares } from "@terse/native-optimizers";
import { oneOf, positiveInteger, v } from "@terse/options";
import type { Tensor } from "@terse/tensor";

/** The option: a number of steps, or auto. */
export const warmup = v.optional(v.union([positiveInteger, oneOf(["auto"])]), "auto");

/** How far the warm-up of a vector is. */
export type Warmup = {
  /** The first step of the compression; −1 as long as it is not known. */
  compressesFrom: number;
  /** ‖v‖ when it was last measured; 0 before that. */
  varianceNorm: number;
};

const stable = 0.96; // ratio of two norms

export const startWarmup = (length: number | "auto"): Warmup => ({
  compressesFrom: length === "auto" ? -1 : length,
  varianceNorm: 0,
});

export const warmsUp = ({ compressesFrom }: Warmup, step: number): boolean =>
  compressesFrom < 0 || step < compressesFrom;

/** After a step of a warm-up whose length is not given: ends it where the variance is stable. */
export function watchVariance(variance: Tensor, scalars: Warmup, step: number, beta2: number): void {
  if (scalars.compressesFrom >= 0 || (step + 1) % Math.round(1 / (1 - beta2)) !== 0) return;
  const norm = Math.sqrt(sumOfSquares(variance));
  const ratio = norm / scalars.varianceNorm;
  if (ratio >= stable && ratio <= 1 / stable) scalars.compressesFrom = step + 1;
  scalars.varianceNorm = norm;
}
