import { added, type Matrix, meanOf, normOf } from "./matrices.ts";

/** For tests: how far the ranks' momenta are from their mean, √mean_i ‖M_i − M̄‖² / ‖M̄‖. */
export function momentumDrift(momenta: readonly Matrix[]): number {
  const mean = meanOf(momenta);
  const squares = momenta.map((M) => normOf(added(M, mean, -1)) ** 2);
  return Math.sqrt(squares.reduce((a, b) => a + b) / momenta.length) / normOf(mean);
}
