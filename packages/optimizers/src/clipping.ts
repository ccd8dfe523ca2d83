/** Gradient clipping by the global norm. Pascanu, Mikolov, Bengio 2013, Algorithm 1, https://arxiv.org/abs/1211.5063 */

import { type BufferLike, sumOfSquares } from "@terse/native-optimizers";

/** Euclidean norm of all the vectors together; NaN or ∞ when one of them is. */
export function norm(vectors: readonly BufferLike[]): number {
  return Math.sqrt(vectors.reduce((sum, g) => sum + sumOfSquares(g), 0));
}

/** The norm of all from the norms of the parts, in this order: always the same bits. */
export function together(norms: readonly number[]): number {
  return norms.length === 1 ? norms[0]! : Math.sqrt(norms.reduce((sum, one) => sum + one * one, 0));
}

/** Whether every element and its square are finite in f32: beyond that an optimizer has nothing to work on. */
export function usable(norm: number): boolean {
  return norm < 2 ** 63; // false for NaN
}

/** What a gradient of that norm is multiplied with so that its norm is at most `limit`; a limit of 0 leaves it alone. */
export function clipFactor(norm: number, limit: number): number {
  return limit > 0 && norm > limit ? limit / norm : 1;
}
