/** For tests: the places of the k elements of largest magnitude; of equal ones the first. */
export function largestOf(x: readonly number[], ratio: number): Set<number> {
  const k = Math.max(1, Math.ceil(ratio * x.length));
  const byMagnitude = x.map((_, i) => i).sort((i, j) => Math.abs(x[j]!) - Math.abs(x[i]!) || i - j);
  return new Set(byMagnitude.slice(0, k));
}
