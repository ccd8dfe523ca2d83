/** Quantiles of |c| ÷ its mean, which the update probe measures by layer, and those of two distributions. */
import type { Probed } from "./probed.ts";

/** By the endings of the probe's keys, the share of elements below each. */
export const shares = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 };
export const laplace = [0.69, 2.3, 4.6, 6.9];
export const normal = [0.845, 2.06, 3.23, 4.12];

/** The quantiles of each layer that has them. */
export const quantilesByLayer = (of: Probed["of"]): { name: string; quantiles: number[] }[] =>
  of.texts("layers/names").flatMap((name, i) => {
    const quantiles = Object.keys(shares).map((share) => of.list(`layers/update_${share}`)[i]);
    return quantiles.every((value) => typeof value === "number") ? [{ name, quantiles }] : [];
  });

export function shareNearerToLaplace(layers: readonly { readonly quantiles: readonly number[] }[]): number {
  const near = layers.filter(({ quantiles }) => {
    const distance = (from: readonly number[]) =>
      quantiles.reduce((sum, q, k) => sum + Math.abs(Math.log(q / from[k]!)), 0);
    return distance(laplace) < distance(normal);
  });
  return near.length / layers.length;
}
