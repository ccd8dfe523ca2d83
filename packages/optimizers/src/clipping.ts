/** Gradient clipping by the global norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063 */

import type { Memory } from "@terse/native-optimizers";
import { scaleInPlace, sumOfSquares } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";

/** Euclidean norm of all the vectors together; NaN or ∞ when one of them is. */
export function norm(vectors: readonly Memory[]): number {
  return Math.sqrt(vectors.reduce((sum, g) => sum + sumOfSquares(g), 0));
}

/** Whether every element and its square are finite in f32: beyond that an optimizer has nothing to work on. */
export function usable(norm: number): boolean {
  return norm < 2 ** 63; // false for NaN
}

/** What the vectors are multiplied with so that their norm is at most `limit`; a limit of 0 leaves them alone. */
export function clipFactor(norm: number, limit: number): number {
  return limit > 0 && norm > limit ? limit / norm : 1;
}

export function scale(vectors: readonly Tensor[], factor: number): void {
  if (factor !== 1) for (const g of vectors) scaleInPlace(g, factor);
}
