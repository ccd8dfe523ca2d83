/** Up to `count` of the numbers 0 … total − 1, evenly spread, with both ends. */
export function evenlySpread(count: number, total: number): number[] {
  const most = Math.min(count, total);
  return Array.from({ length: most }, (_, i) => (most === 1 ? 0 : Math.floor((i * (total - 1)) / (most - 1))));
}
