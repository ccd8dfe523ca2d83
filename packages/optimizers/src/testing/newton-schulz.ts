/** For tests: Newton–Schulz in float64, with the standard coefficients. */
import { added, type Matrix, normOf, product, transposed } from "./matrices.ts";

export const standard: [a: number, b: number, c: number] = [3.4445, -4.775, 2.0315];

export function iterated(G: Matrix): Matrix {
  let X = G.map((row) => row.map((x) => x / Math.max(normOf(G), 1e-7)));
  for (let step = 0; step < 5; step++) {
    const A = product(X, transposed(X));
    const polynomial = added(
      A.map((row) => row.map((x) => standard[1] * x)),
      product(A, A),
      standard[2],
    );
    X = added(
      X.map((row) => row.map((x) => standard[0] * x)),
      product(polynomial, X),
    );
  }
  return X;
}
