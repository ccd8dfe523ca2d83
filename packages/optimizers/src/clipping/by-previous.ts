/**
 * An estimate of the global norm when bucket b leaves, while backward still runs:
 *
 *   N_b = √(Σ_{j ≤ b} n_j²) · √(Σ_j p_j / Σ_{j ≤ b} p_j)
 *
 *   n_j    norm of bucket j, in the order in which they leave
 *   p_j    n_j² of the step before, its mean over the ranks, on which all agree in one small message
 *
 * So the part that is known now is extended by the shares of the step before. If the gradient grows as a whole, it is
 * clipped as by its global norm. The norm of the step before alone would let spikes through, which momenta remember.
 *
 * `own`: n_0 … n_b; `squares`: p_j of all buckets.
 */
export function normByPrevious(own: readonly number[], squares: readonly number[]): number {
  const known = sum(own.map((norm) => norm ** 2));
  const [part, whole] = [sum(squares.slice(0, own.length)), sum(squares)];
  return part > 0 ? Math.sqrt((known * whole) / part) : Math.sqrt(Math.max(known, whole));
}

const sum = (squares: readonly number[]) => squares.reduce((total, one) => total + one, 0);
