import { added, gramSchmidt, type Matrix, matrix, product, transposed, unitColumns } from "./matrices.ts";
import type { Shape } from "./train-matrices.ts";

/**
 * For tests: centralised Dion in float64, as printed, after each step; Q of the first step is the one that `dion`
 * draws.
 */
export function centralisedDion(
  [m, n]: Shape,
  {
    Q,
    gradient,
    start,
    steps,
    lr,
    μ = 0.95,
    λ = 0,
  }: {
    Q: Matrix;
    gradient: (step: number) => Matrix;
    start: Matrix;
    steps: number;
    lr: number;
    μ?: number;
    λ?: number;
  },
) {
  let [X, M] = [start, matrix(m, n, () => 0)];
  return Array.from({ length: steps }, (_, step) => {
    const B = added(M, gradient(step));
    const P = gramSchmidt(product(B, Q));
    const R = product(transposed(B), P);
    M = added(B, product(P, transposed(R)), μ - 1);
    Q = unitColumns(R);
    X = added(
      X.map((row) => row.map((x) => (1 - lr * λ) * x)),
      product(P, transposed(Q)),
      -lr * Math.sqrt(m / n),
    );
    return { X, M, Q };
  });
}
