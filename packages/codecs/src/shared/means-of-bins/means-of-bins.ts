/**
 * The means of bins: what the values of `bin-means` and the values of top-k in 2 bits stand for.
 *
 *   mean of bin b = (the sum of the values in b) / (how many there are)
 *
 * The sum is in fp64, in the order of shared/reductions, where values of other bins count as 0.
 */
import { sumOfValues } from "../reductions/reductions.ts";

/** `binOf[i]` is the bin of x[i], of `bins` bins. An empty bin stands for `ofEmpty(bin)`. */
export function meansOfBins(
  x: Float32Array,
  binOf: ArrayLike<number>,
  bins: number,
  ofEmpty: (bin: number) => number,
): number[] {
  return Array.from({ length: bins }, (_, bin) => {
    const count = x.filter((_, i) => binOf[i] === bin).length;
    return count === 0 ? ofEmpty(bin) : sumOfValues(x.map((value, i) => (binOf[i] === bin ? value : 0))) / count;
  });
}
